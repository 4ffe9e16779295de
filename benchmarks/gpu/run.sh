#!/usr/bin/env bash
# Collects workloads on one GPU in less than ten minutes; needs only torch:
#
#     benchmarks/gpu/run.sh OUT                             # full size
#     benchmarks/gpu/run.sh OUT --device cpu --size tiny    # a rehearsal without a GPU
#     ONLY="bert vit" benchmarks/gpu/run.sh OUT             # some of the workloads
#
# OUT then contains one folder per workload with its trace sets and manifests, its table (if tracediff is installed), and environment.txt.
# Traces larger than 16 MB, and those of all but the first two runs of a variant, are removed: the tables need only the manifests.
# Each workload has a budget in seconds; BUDGET_S is that of all of them. What does not fit is named at the end. It exits with 1 if a workload failed.
set -uo pipefail
out=${1:?usage: run.sh OUT [--device cpu --size tiny]}
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
export PYTHONPATH="$root:$root/cli${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$out" || exit 1
until=$(($(date +%s) + ${BUDGET_S:-540}))
left_out=() failed=()

python3 - > "$out/environment.txt" <<'PY' || exit 1
import platform, torch
print("torch", torch.__version__, "cuda", torch.version.cuda, "python", platform.python_version())
print("gpu", torch.cuda.get_device_name() if torch.cuda.is_available() else "none")
PY

collect() { # WORKLOAD SECONDS REPEATS VARIANT... [-- OPTION...]
  local name=$1 seconds=$2 repeats=$3 variants=() left
  shift 3
  while [ $# -gt 0 ] && [ "$1" != -- ]; do variants+=(--variant "$1"); shift; done
  [ "${1:-}" != -- ] || shift
  case " ${ONLY:-$name} " in *" $name "*) ;; *) return ;; esac
  left=$((until - $(date +%s)))
  if [ "$left" -lt 20 ]; then left_out+=("$name"); return; fi
  timeout -k 10 "$((left < seconds ? left : seconds))" python3 -m tracediff.collect --workload "$name" --repeats "$repeats" --active 3 \
    --overwrite -o "$out/$name" "${variants[@]}" "$@" 2>&1 | tee "$out/$name.txt"
  case ${PIPESTATUS[0]} in
    0) ;;
    124 | 137) left_out+=("a part of $name") ;;
    *) failed+=("$name") ;;
  esac
}

collect conv-bn 40 2 eager fx_fused -- --size full "$@"
collect ensemble 50 2 loop vmap -- --size full "$@"
collect per-sample-grad 80 2 loop vmap -- --size full "$@"
collect bert 120 2 eager compile -- --size full "$@"
collect resnet50 150 2 eager channels_last compile+channels_last+amp -- --size full "$@"
collect vit 240 1 eager eager+amp compile compile+amp cudagraphs -- --size full "$@"

find "$out" -path '*/run*/*.gz' -size +16M -delete
find "$out" -path '*/run[3-9]/*.gz' -delete
find "$out" -type d -name 'run*' -empty -delete
du -sh "$out"
[ ${#left_out[@]} -eq 0 ] || printf 'left out, because time was up: %s\n' "${left_out[@]}"
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
