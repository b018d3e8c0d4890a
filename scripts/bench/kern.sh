#!/usr/bin/env bash
# kern.sh [THREADS [SECONDS]] -- GFLOP/s and GB/s of the kernels on shapes of GPT-2, beside what the machine
# does at best: a loop of multiply-adds in registers and a triad out of cache, with the same threads.
#
# The peaks are measured before and after: where the two differ much, the machine was not calm and the
# table says little. Honours GEMM= and HPBENCH_ISA= as the program does.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

case "${GEMM:-onednn}" in
onednn) libs=-ldnnl ;;
openblas) libs=$(pkg-config --libs openblas) ;;
plain) libs= ;;
*)
    echo "kern.sh: GEMM=$GEMM is none of onednn openblas plain" >&2
    exit 2
    ;;
esac

out=$(make -s where)
make -s -j2 "$out/libhp.a" >/dev/null
"${CC:-gcc}" -std=gnu11 -O3 -march=native -mprefer-vector-width=512 -fopenmp -D_GNU_SOURCE -Isrc \
    -o "$out/bench-kern" scripts/bench/kern.c "$out/libhp.a" $libs -lm
exec "$out/bench-kern" "${1:-$(nproc)}" "${2:-0.1}"
