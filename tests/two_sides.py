"""Comparisons of two generated sides, and what a side launches (µs)."""

import json
from pathlib import Path

from build_trace import call, document, kernel, op, write

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets

MANIFEST = Path(__file__).parents[1] / "sample_traces/vit/eager/manifest.json"


def compared(folder, sides, runs=1, unprofiled=None):
    """The comparison of {name: events, or a function of the run}, with steps that take ``unprofiled`` µs otherwise."""
    for side, (name, events) in enumerate(sides.items()):
        for run in range(runs):
            recorded = events(run) if callable(events) else events
            write(folder / name / f"run{run + 1}" / "trace.json", document(recorded))
        if unprofiled:
            manifest = json.loads(MANIFEST.read_text())
            timed = [sample | {"wall_us": unprofiled[side]} for sample in manifest["runs"][0]["unprofiled_steps"]]
            manifest["runs"] = [manifest["runs"][0] | {"unprofiled_steps": timed}]
            (folder / name / "manifest.json").write_text(json.dumps(manifest))
    return compare_sets(*load_sets([str(folder / name) for name in sides]), force=True)


def launch(number, name, took, begin, op_name="aten::mm", host=3, at=None, **args):
    """An operator of ``host`` µs, by default the next, that launches one kernel."""
    start = number * host if at is None else at
    return [
        op(op_name, start, host, **args),
        call("cudaLaunchKernel", start + 1, 1, number + 1),
        kernel(name, begin, took, number + 1, grid=[8, 1, 1], block=[128, 1, 1]),
    ]
