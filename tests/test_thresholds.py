"""Every threshold decides something: half of it, or half as much again, changes the case that the register names."""

import re
from functools import cache
from pathlib import Path

import pytest
from threshold_cases import CASES, REAL

from tracediff import bounds, thresholds

TABLE = thresholds.decides.table(thresholds)
ROOT = Path(__file__).parents[1]


@cache
def usual(case):
    return CASES[case]()


def parameters():
    for name, threshold in TABLE.items():
        marks = [pytest.mark.slow] if threshold.case in (*REAL, "history") else []
        if threshold.case in REAL and "sample_traces" not in str(REAL[threshold.case][0]):
            marks.append(pytest.mark.traces)
        yield pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", list(parameters()))
def test_a_scaled_threshold_changes_its_case(monkeypatch, name):
    value, case = TABLE[name].value, TABLE[name].case
    as_it_is = usual(case)
    for factor in (0.5, 1.5):
        monkeypatch.setattr(thresholds, name, type(value)(factor * value))
        if CASES[case]() != as_it_is:
            return
    pytest.fail(f"{case} is the same whether {name} is half or half as much again")


@pytest.mark.parametrize(
    ("module", "register"), [(thresholds, thresholds.decides), (bounds, bounds.bound)], ids=["thresholds", "bounds"]
)
def test_every_number_is_used(module, register):
    name = module.__name__.rpartition(".")[2]
    product = [path for top in ("tracediff", "cli", "dashboards") for path in (ROOT / top).rglob("*.py")]
    used = {found for path in product for found in re.findall(rf"\b{name}\.([A-Z]\w*)", path.read_text())}
    assert used == register.table(module).keys()
