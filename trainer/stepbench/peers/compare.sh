#!/bin/bash
# Runs stepbench and its PyTorch peers in turn, several rounds in alternating order, on this machine, and prints a markdown table.
#
#   make build && trainer/stepbench/peers/compare.sh [PATH/TO/bidvl]
#   ROUNDS=3 SECS=40 CASES="grbm-bidsm ranks" trainer/stepbench/peers/compare.sh
#
# PATH/TO/bidvl is a folder with bidvl_ddp.py, a PyTorch program of BiDVL's step, which is no part of this repository: conv32, resnet128, both with
# -bf16, and ranks-torch are skipped without it. Any program will do that takes the flags below (bidvl) and prints a JSON line as harness.py does; its
# networks and losses are those of ALGORITHMS.md §1.2 and §1.3 (trainer/method). The other peers are here. COMPILE wants bidvl_models.py beside it, which builds the
# networks and the lower loss, and the flag --compile.
#
# CASES   conv32 resnet128 conv32-bf16 resnet128-bf16 ranks ranks-torch grbm-bidsm conv-sm lebm-pictures vages-mnist lebm-text (default: all; one that this build's stepbench cannot run, or whose peer is missing, is skipped, and said so)
# ROUNDS  times that every program of a case runs, alternating (default 3)
# SECS    most seconds that one run samples (default 40)
# STEPS   quiet samples that one run wants (default 5)
# BIN     folder of stepbench and ddplaunch (default bin/ of this repository)
# OUT     file that keeps every result as a JSON line (default: a temporary one)
# THREADS threads of the runs on one rank (default 2; 1 is steadier on a busy machine, but is not what the bars ask for)
# PYTHON  command that runs a peer (default /usr/bin/python3), to compare with another PyTorch. It may be several words; PATH/TO/bidvl and
#         this folder must be there under the same paths. With a newer Debian in a folder ROOT, see below:
#           PYTHON="chroot ROOT /usr/bin/python3"
# COMPILE what --compile of a peer takes (default, max-autotune, or options of inductor): every peer runs a second time with its step compiled, which makes a
#         second row. cpp_wrapper=True takes the shortest time to compile. It wants PyTorch >= 2.6 and what that compiles with; see below.
#         One rank's step is one graph (graph.py, bidvl_graph.py); of ranks-torch the networks and the lower loss are, by bidvl_ddp.py --compile default, because
#         DDP hooks into autograd. A step that does not compile ends the comparison: nothing runs eagerly in its place.
# SMOKE=1 small networks where both sides have them: to see that it works, not how fast
#
# The peers want OpenBLAS over OpenMP (libopenblas0-openmp): with that of POSIX threads, two pools of threads fight for the cores. grbm-bidsm, two quiet
# cores, images/s: PyTorch 1.13 2100 for 670 to 1530, PyTorch 2.6 2200 for 88. Where both are installed: update-alternatives --config libblas.so.3-$(uname -m)-linux-gnu.
#
# A newer Debian in a folder, as root; ABOVE is a folder above both this repository and PATH/TO/bidvl. Undo the mounts before removing ROOT.
#   debootstrap --variant=minbase trixie ROOT
#   chroot ROOT apt-get install --no-install-recommends python3-torch libopenblas0-openmp
#   chroot ROOT apt-get install --no-install-recommends g++ python3-dev python3-setuptools libtorch-dev pybind11-dev libsleef-dev    # for COMPILE
#   mount -t proc proc ROOT/proc; mount --bind /dev ROOT/dev; mount --bind /dev/shm ROOT/dev/shm
#   mkdir -p ROOT/ABOVE; mount --bind ABOVE ROOT/ABOVE; mount -o remount,ro,bind ROOT/ABOVE
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
peers=${1:-}
ROUNDS=${ROUNDS:-3} SECS=${SECS:-40} STEPS=${STEPS:-5} THREADS=${THREADS:-2} BIN=${BIN:-$here/../../../bin} PYTHON=${PYTHON:-/usr/bin/python3} SMOKE=${SMOKE:-} COMPILE=${COMPILE:-}
CASES=${CASES:-conv32 resnet128 conv32-bf16 resnet128-bf16 ranks ranks-torch grbm-bidsm conv-sm lebm-pictures vages-mnist lebm-text}
OUT=${OUT:-$(mktemp --suffix .jsonl)}
die() { echo "compare.sh: $*" >&2; exit 2; }

BIN=$(cd "$BIN" 2>/dev/null && pwd) || die "no folder $BIN: run make build"
if [ -n "$peers" ]; then
  [ -f "$peers/bidvl_ddp.py" ] || die "want the folder that holds bidvl_ddp.py, got '$peers'"
  peers=$(cd "$peers" && pwd) # PYTHON may run in another folder
fi
case "$BIN$here$peers" in *[[:space:]]*) die "want paths without spaces" ;; esac
[ -x "$BIN/stepbench" ] && [ -x "$BIN/ddplaunch" ] || die "no stepbench and ddplaunch in $BIN: run make build"
[ -x /usr/bin/python3 ] || die "want /usr/bin/python3, which makes the table"
$PYTHON -c 'import torch' </dev/null 2>/dev/null || die "want Debian's torch in $PYTHON: apt-get install --no-install-recommends python3-torch libopenblas0-openmp"
$PYTHON -c 'import os, sys; sys.exit(not all(map(os.path.exists, sys.argv[1:])))' "$here" ${peers:+"$peers/bidvl_ddp.py"} </dev/null || die "$PYTHON does not see $here or $peers"

# The strongest setting of PyTorch; harmless to ours, which allocates nothing in a step.
unset OPENBLAS_CORETYPE # harness.py knows better
export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592
export PYTHONDONTWRITEBYTECODE=1

# bidvl_ddp.py asks torch for AVX-512, and torch ends with an illegal instruction where there is none.
aten=; grep -qw avx512vl /proc/cpuinfo || aten=--aten=

ours() { echo "$BIN/stepbench --json --steps $STEPS --warmup 1 --max-s $SECS $*"; }
peer() { echo "$PYTHON $here/$1 --iters $STEPS --warmup 1 --max-s $SECS ${*:2}"; }
ddp() { echo "$peers/bidvl_ddp.py --channels-last $aten --iters $STEPS --warmup 1 --max-s $SECS $*"; }

# Sides of a case: a peer as it is and, if COMPILE says so, compiled.
torch() { echo "torch|$(peer "$@")"; [ -z "$COMPILE" ] || echo "compiled|$(peer "$@" --compile "$COMPILE")"; }
bidvl() { echo "torch|$PYTHON $(ddp "$@")"; [ -z "$COMPILE" ] || echo "compiled|$(peer bidvl_graph.py "$peers" --channels-last "$@" --compile "$COMPILE")"; }
ranks() { echo "torch 2x1|$PYTHON $(ddp "$@")"; [ -z "$COMPILE" ] || echo "compiled 2x1|$PYTHON $here/graph.py $(ddp "$@" --compile default)"; }

width= ch=; [ -n "$SMOKE" ] && width="--width 16" ch="--ch 16"

# sides CASE: what is compared, one "label|command" a line; ratios are of the first over each other
sides() {
  case $1 in
  conv32)      echo "ours|$(ours --net conv32 $width --batch 64 --threads $THREADS)"
               bidvl --model conv32 --loss kl $ch --batch 64 --threads $THREADS ;;
  resnet128)   echo "ours|$(ours --net resnet128 $width --batch 8 --threads $THREADS)"
               bidvl --model resnet128 $ch --batch 8 --threads $THREADS ;;
  conv32-bf16) echo "ours|$(ours --net conv32 $width --batch 64 --threads $THREADS --precision bf16)"
               bidvl --model conv32 --loss kl $ch --batch 64 --threads $THREADS --bf16 ;;
  resnet128-bf16) echo "ours|$(ours --net resnet128 $width --batch 8 --threads $THREADS --precision bf16)"
               bidvl --model resnet128 $ch --batch 8 --threads $THREADS --bf16 ;;
  ranks)       echo "ours 2x1|$(ours -nproc 2 --net conv32 $width --batch 64 --threads 1)"
               echo "ours 1x2|$(ours --net conv32 $width --batch 64 --threads 2)" ;;
  ranks-torch) echo "ours 2x1|$(ours -nproc 2 --net conv32 $width --batch 64 --threads 1)"
               ranks --model conv32 --loss kl $ch --batch 32 --world 2 ;;
  grbm-bidsm)  echo "ours|$(ours --net grbm-bidsm --batch 100 --threads $THREADS)"
               torch grbm_bidsm.py --batch 100 --threads $THREADS ;;
  conv-sm)     echo "ours|$(ours --net conv-sm $width --batch 64 --threads $THREADS)"
               torch conv_sm.py $width --batch 64 --threads $THREADS --channels-last ;;
  lebm-pictures) echo "ours|$(ours --net lebm-pictures --batch 100 --threads $THREADS)"
               torch lebm.py --batch 100 --threads $THREADS ;;
  vages-mnist) echo "ours|$(ours --net vages-mnist --batch 100 --threads $THREADS)"
               torch vages.py --batch 100 --threads $THREADS ;;
  lebm-text)   echo "ours|$(ours --net lebm-text --batch 32 --threads $THREADS)"
               torch lebm_text.py --batch 32 --threads $THREADS ;;
  *) die "unknown case $1 in CASES" ;;
  esac
}

# Help is in lines of 80 columns, and names may be on any of them.
has() { "$BIN/stepbench" --help | tr -s "[:space:]" " " | grep -q -- "what is trained: [^(]*\b$1\b"; }
for c in $CASES; do sides "$c" >/dev/null || exit 2; done
: > "$OUT" || exit 2
for c in $CASES; do
  net=${c%-bf16}; case $c in ranks*) net=conv32 ;; esac
  if ! has "$net"; then echo "compare.sh: skipped $c: this stepbench has no --net $net" >&2; continue; fi
  case $c in *-bf16)
    said=$("$BIN/stepbench" --net conv32 --width 8 --batch 2 --steps 1 --max-s 1 --precision bf16 2>&1 >/dev/null | grep "no bf16")
    if [ -n "$said" ]; then echo "compare.sh: skipped $c: $said" >&2; continue; fi ;;
  esac
  if [ -z "$peers" ] && sides "$c" | grep -q bidvl_ddp.py; then echo "compare.sh: skipped $c: it needs a folder with bidvl_ddp.py as the argument" >&2; continue; fi
  for round in $(seq "$ROUNDS"); do
    while IFS='|' read -r label cmd; do
      echo "compare.sh: $c, round $round of $ROUNDS: $label" >&2
      line=$($cmd </dev/null | grep '^{' | head -n 1) || { echo "compare.sh: failed: $cmd" >&2; exit 1; }
      printf '{"case": "%s", "side": "%s", "cmd": "%s", "result": %s}\n' "$c" "$label" "$cmd" "$line" >> "$OUT"
    done < <(sides "$c" | if [ $((round % 2)) = 0 ]; then tac; else cat; fi)
  done
done
/usr/bin/python3 "$here/table.py" "$OUT" && echo "every run: $OUT" >&2
