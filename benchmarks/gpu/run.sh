#!/usr/bin/env bash
# Collects workloads on one GPU in less than eight minutes; needs only torch:
#
#     benchmarks/gpu/run.sh OUT [--device cpu --size tiny]
#
# OUT then contains one folder per workload with its trace sets and manifests, its table (if tracediff is installed), and environment.txt.
# Traces larger than 16 MB, and those of all but the first two runs of a variant, are removed: the tables need only the manifests.
set -euo pipefail
out=${1:?usage: run.sh OUT [--device cpu --size tiny]}
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
export PYTHONPATH="$root:$root/cli${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$out"

python3 - > "$out/environment.txt" <<'PY'
import platform, torch
print("torch", torch.__version__, "cuda", torch.version.cuda, "python", platform.python_version())
print("gpu", torch.cuda.get_device_name() if torch.cuda.is_available() else "none")
PY

collect() { # WORKLOAD REPEATS VARIANT... [-- OPTION...]
  local name=$1 repeats=$2 variants=()
  shift 2
  while [ $# -gt 0 ] && [ "$1" != -- ]; do variants+=(--variant "$1"); shift; done
  [ "${1:-}" != -- ] || shift
  timeout "${LIMIT_S:-150}" python3 -m tracediff.collect --workload "$name" --repeats "$repeats" --active 3 --overwrite -o "$out/$name" \
    "${variants[@]}" "$@" | tee "$out/$name.txt" || echo "$name: collection is incomplete" | tee -a "$out/$name.txt"
}

collect vit 3 eager eager+amp compile cudagraphs compile:mode=max-autotune -- --size small "$@"
collect resnet50 2 eager channels_last channels_last+amp -- --size small "$@"
collect bert 2 eager compile -- --size small "$@"
collect ensemble 2 loop vmap -- --size small "$@"
collect per-sample-grad 2 loop vmap -- --size small "$@"

find "$out" -path '*/run*/*.gz' -size +16M -delete
find "$out" -path '*/run[3-9]/*.gz' -delete
find "$out" -type d -name 'run*' -empty -delete
du -sh "$out"
