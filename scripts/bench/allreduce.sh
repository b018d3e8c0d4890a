#!/usr/bin/env bash
# allreduce.sh [PAIRS] -- 64 MiB between two devices, ours and Open MPI's in turn; bus bandwidth = 2 (n-1)/n bytes / seconds = bytes / seconds for n = 2.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd) && cd "$top" || exit 2
pairs=${1:-5} tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
make -s -j2 all || exit 1
cc -O2 -std=gnu11 -D_GNU_SOURCE= -fopenmp -Isrc scripts/bench/allreduce.c build/release/libhp.a $(make -s print-libs) -o "$tmp/ours" || exit 1
mpi=''
if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then
    mpicc -O2 scripts/bench/mpi_allreduce.c -o "$tmp/mpi" && mpi="mpirun --allow-run-as-root --oversubscribe --bind-to core -n 2 $tmp/mpi"
fi
for _ in $(seq "$pairs"); do
    x=$("$tmp/ours") y=nan
    [ -n "$mpi" ] && y=$($mpi 2>/dev/null)
    echo "$x $y"
done | awk '{printf "all-reduce 64 MiB x 2   hpbench %.4f s  %.2f GB/s   Open MPI %s s   %s\n", $1, 67.108864e-3/$1, $2, $2 == "nan" ? "(not installed)" : sprintf("%.2f x", $2/$1)}'
