"""Changes on the critical path beside those of all time."""

from traces import needs_traces, trace

from tracediff.diff.critical import CriticalChange, critical_changes
from tracediff.engine import load_sets
from tracediff.profile.average import measure_average


def test_an_operator_that_got_slower_off_the_path_did_nothing_to_the_step():
    control = 2, {("op", "aten::mm"): [0, 200], ("gpu_compute", "gemm"): [100, 120], ("op", "gone"): [4, 4]}
    test = 3, {("op", "aten::mm"): [0, 420], ("gpu_compute", "gemm"): [120, 180], ("op", "new"): [9, 9]}
    assert critical_changes(control, test) == (
        6,
        (
            CriticalChange("gpu_compute", "gemm", 2 * 180 - 3 * 120, 2 * 120 - 3 * 100),
            CriticalChange("op", "new", 18, 18),
            CriticalChange("op", "gone", -12, -12),
            CriticalChange("op", "aten::mm", 2 * 420 - 3 * 200, 0),
        ),
    )


@needs_traces
def test_changes_on_the_path_add_up_to_that_of_the_step_and_swapping_sides_swaps_signs():
    sets = load_sets([str(trace(name)) for name in ("resnet50_workers0", "resnet50_workers4")], measures=("critical",), jobs=1)
    control, test = (measure_average(one, "critical") for one in sets)
    scale, changes = critical_changes(control, test)
    (a, steps_a), (b, steps_b) = (
        (one.profiles[0].periods[one.selection.used(one.profiles[0])].sum(), one.selection.used(one.profiles[0]).sum()) for one in sets
    )
    assert sum(c.critical for c in changes) == scale * int(b) // int(steps_b) - scale * int(a) // int(steps_a)
    largest = changes[0]
    assert "DataLoader" in largest.name
    assert largest.critical / scale < -30e6
    back = critical_changes(test, control)[1]
    assert [(c.kind, c.name, -c.total, -c.critical) for c in back] == [(c.kind, c.name, c.total, c.critical) for c in changes]
