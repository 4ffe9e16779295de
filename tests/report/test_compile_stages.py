"""Which stage of torch.compile is named where results or times turn."""

import pytest
from msgspec.structs import replace

from tracediff.collect.options import STAGES as COLLECTED
from tracediff.collected import CollectionTable, VariantRow
from tracediff.present.collection import STAGES, stage_lines
from tracediff.report.collection import to_markdown

ROWS = [
    VariantRow(variant=v, runs=2, step_us=us) for v, us in zip(STAGES, (10_000, 10_400, 10_900, 6_000), strict=True)
]


def test_the_stages_are_those_that_are_collected():
    assert tuple(STAGES) == COLLECTED


def test_the_largest_step_in_time_is_named():
    same, time = stage_lines(ROWS)
    assert same == "Every stage of torch.compile computes the same, as far as that was checked"
    assert time == "The step time changes most at compile (Inductor generates code): 10.9 → 6.0 ms"
    assert "- The step time changes most at compile" in to_markdown(CollectionTable("net", None, {}, ROWS))


@pytest.mark.parametrize(
    ("place", "facts", "said", "minifier"),
    [
        (2, {"different": "norm of the result 1 → 2 (first step)"}, "computes something else: norm", "dynamo 4"),
        (3, {"different": "norm of the result 1 → 2 (first step)"}, "computes something else: norm", "aot 4"),
        (2, {"failed": "Unsupported: x", "runs": 0, "step_us": None}, "fails: Unsupported: x", "dynamo 2"),
    ],
)
def test_the_first_stage_that_turns_is_named_with_its_minifier(place, facts, said, minifier):
    rows = [replace(row, **facts) if k == place else row for k, row in enumerate(ROWS)]
    turn, how, *_ = stage_lines(rows)
    assert turn.startswith(f"From {list(STAGES)[place]} on (")
    assert said in turn
    after, level = minifier.split()
    assert f"TORCHDYNAMO_REPRO_AFTER={after} TORCHDYNAMO_REPRO_LEVEL={level} " in how


def test_a_wrong_graph_is_not_for_the_minifier_and_disturbed_times_name_no_stage():
    wrong = replace(ROWS[1], different="norm of the result 1 → 2 (first step)", contended=2)
    _, how = stage_lines([ROWS[0], wrong, *ROWS[2:]])
    assert how.startswith("TORCH_LOGS=graph_code shows what Dynamo captured")


def test_other_collections_have_no_stages():
    assert stage_lines(ROWS[:3]) == []
