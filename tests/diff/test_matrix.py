"""Many sets against one: tests corrected for being many."""

import json

from build_trace import document, op, step, write
from click.testing import CliRunner
from hypothesis import given, strategies as st
from tracediff_cli.group import cli

from tracediff.diff.verdict import Judging
from tracediff.engine import load_sets
from tracediff.explain.compare import against_control, every_pair, holm


def runs_of(folder, *lengths):
    """A set with a run of that many µs a step each."""
    for k, us in enumerate(lengths, 1):
        write(folder / f"run{k}" / "rank0.json", document([step(1, 0, us), op("aten::mm", 0, us // 2)]))
    return str(folder)


def test_holm_takes_each_p_as_one_of_those_not_yet_rejected():
    assert holm([0.01, None, 0.04, 0.03]) == [0.03, None, 0.06, 0.06]


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=8))
def test_holm_only_raises_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    pairs = [(p, q) for p, q in zip(p_values, adjusted, strict=True) if p is not None]
    assert all(p <= q <= 1 for p, q in pairs)
    assert [q for _, q in sorted(pairs)] == sorted(q for _, q in pairs)
    assert all((p is None) == (q is None) for p, q in zip(p_values, adjusted, strict=True))


def test_rows_and_pairs(tmp_path):
    control = runs_of(tmp_path / "control", 1000, 1002, 1001, 1003, 999)
    slower = runs_of(tmp_path / "slower", 1500, 1502, 1501, 1503, 1499)
    same = runs_of(tmp_path / "same", 1001, 1003, 1000, 1002, 1001)
    sets = load_sets([control, slower, same])
    assert [cell.result for cell in against_control(sets[0], sets[1:], Judging())] == ["slower", "same"]
    assert [cell.result for cell in every_pair(sets, Judging())] == ["slower", "same", "faster"]
    run = CliRunner(env={"COLUMNS": "160"}).invoke(
        cli, ["matrix", control, slower, same, "--json", "-"], standalone_mode=False
    )
    found = json.loads(run.stdout)
    assert [c["result"] for c in found["comparisons"]] == ["slower", "same"]
    twice = CliRunner(env={"COLUMNS": "160"}).invoke(
        cli, ["matrix", control, slower, same, slower, "--json", "-"], standalone_mode=False
    )
    assert [c["test"] for c in json.loads(twice.stdout)["comparisons"]] == ["slower", "same", "slower (2)"]
    text = (
        CliRunner(env={"COLUMNS": "160"}).invoke(cli, ["matrix", control, slower, same], standalone_mode=False).stdout
    )
    assert "slower" in text
    assert "5 : 5" in text
