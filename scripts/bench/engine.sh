#!/usr/bin/env bash
# engine.sh -- the engine's speed, in pairs of one run: A B A B ..., the ratio pair by pair, the median quoted.
#
#   scripts/bench/engine.sh [--pairs N] [--steps N] [--llmc DIR] [--llmc-small DIR] [--torch 'PYTHON'] [--mpi]
#
# --llmc DIR        a folder with llm.c's CPU program `train_gpt2` and a gpt2_124M.bin (B=4, T=64 as it comes)
# --llmc-small DIR  the same with a checkpoint of 4 layers, 256 wide, 4 heads, vocabulary 256
# --torch 'PYTHON'  how to start a Python with PyTorch, e.g. 'env OMP_NUM_THREADS=2 OMP_PROC_BIND=true python3'
# --mpi             64 MiB all-reduce beside Open MPI's (needs mpicc and mpirun)
# Each pair stands between two FMA calibrations; a window whose two-thread rate is under 1.9 times the one-thread rate is marked contended.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd) && cd "$top" || exit 2
pairs=5 steps=12 llmc='' llmc_small='' torch='' mpi=''
while [ $# -gt 0 ]; do
    case $1 in
    --pairs) pairs=$2 && shift ;;
    --steps) steps=$2 && shift ;;
    --llmc) llmc=$2 && shift ;;
    --llmc-small) llmc_small=$2 && shift ;;
    --torch) torch=$2 && shift ;;
    --mpi) mpi=1 ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" && exit 2 ;;
    esac
    shift
done
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
make -s -j2 all || exit 1
cc -O3 -march=native -fopenmp scripts/bench/fma.c -o "$tmp/fma" || exit 1
export HPBENCH_STORE=$tmp/store.db

median() { sort -g | awk '{v[NR]=$1} END {if (NR) print NR%2 ? v[(NR+1)/2] : (v[NR/2]+v[NR/2+1])/2; else print "nan"}'; }
# Each program prints the seconds of its step, the median of its own steps without the first two.
ours() { ./hpbench run -q "$@" --steps "$steps" --format=json:"$tmp/r.json" >/dev/null 2>"$tmp/err" || { cat "$tmp/err" >&2; exit 1; }; jq .step_s "$tmp/r.json"; }
llmc_step() { (cd "$1" && stdbuf -oL ./train_gpt2 2>/dev/null | sed -n 's/.*took \([0-9.]*\) ms.*/\1/p' | head -n "$2" | tail -n +3 | awk '{print $1/1000}') | median; }
torch_step() { $torch scripts/bench/torch_gpt2.py "$@" "$steps" "$dtype" | tail -n +3 | median; }

# pair NAME 'A' 'B': runs both in turn and prints B/A, how many times as fast A is.
pair() {
    local name=$1 a=$2 b=$3 i x y contended=0 one two
    : >"$tmp/a"; : >"$tmp/b"; : >"$tmp/ratio"
    for i in $(seq "$pairs"); do
        read -r one two < <("$tmp/fma")
        awk -v a="$one" -v b="$two" 'BEGIN {exit !(b < 1.9 * a)}' && contended=$((contended + 1))
        x=$(eval "$a") y=$(eval "$b")
        echo "$x" >>"$tmp/a"; echo "$y" >>"$tmp/b"
        awk -v x="$x" -v y="$y" 'BEGIN {print y / x}' >>"$tmp/ratio"
    done
    printf '%-44s %10.4f s %10.4f s %8.2f x   (%s .. %s; %d of %d windows contended)\n' "$name" "$(median <"$tmp/a")" "$(median <"$tmp/b")" \
        "$(median <"$tmp/ratio")" "$(sort -g "$tmp/ratio" | head -n 1)" "$(sort -g "$tmp/ratio" | tail -n 1)" "$contended" "$pairs"
}

big='ours -m gpt2 -c host:1 -s dp=1,mbs=4 -o model.seq=64' small='ours -m gpt2-small -c host:1 -s dp=1,mbs=4 -o model.seq=64'
echo "FMA, GFLOP/s on one and two threads: $("$tmp/fma")"
printf '%-44s %12s %12s %10s\n' 'step' 'hpbench' 'other' 'other/ours'
[ -n "$llmc" ] && pair 'GPT-2 124M, B=4 T=64, f32, llm.c' "$big" "llmc_step '$llmc' 8"
[ -n "$llmc_small" ] && pair 'gpt2-small, B=4 T=64, f32, llm.c' "$small" "llmc_step '$llmc_small' 16"
if [ -n "$torch" ]; then
    dtype=f32
    pair 'GPT-2 124M, B=4 T=64, f32, PyTorch' "$big" 'torch_step 12 768 12 50257 4 64'
    pair 'gpt2-small, B=4 T=64, f32, PyTorch' "$small" 'torch_step 4 256 4 256 4 64'
    dtype=bf16
    pair 'GPT-2 124M, B=4 T=64, bf16, PyTorch' "${big/mbs=4/mbs=4,dtype=bf16}" 'torch_step 12 768 12 50257 4 64'
fi
pair 'gpt2-small dp=2,zero=1 against one device' "$small" 'ours -m gpt2-small -c host:2 -s dp=2,zero=1,mbs=2,overlap=all -o model.seq=64'
pair 'gpt2-small dp=2 against one device' "$small" 'ours -m gpt2-small -c host:2 -s dp=2,mbs=2,overlap=all -o model.seq=64'
if [ -n "$mpi" ]; then
    scripts/bench/allreduce.sh "$pairs"
fi
