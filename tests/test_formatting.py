"""How numbers read, and that one time reads the same in every output."""

import re
from io import StringIO

import pytest
from build_trace import annotation, document, op, step, write
from hypothesis import given, strategies as st
from rich.console import Console
from tracediff_dashboards.pages import changes
from tracediff_dashboards.pages.components import rendered
from tracediff_dashboards.state.view import OF_TABS, View

from tracediff import charts
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.formatting import (
    PERCENT,
    Unit,
    byte_unit,
    change,
    closing,
    common_unit,
    count,
    counts_of,
    flop_unit,
    number,
    percent,
    signed_count,
    signed_percent,
    signed_time,
    size,
    sizes,
    time,
    time_unit,
    with_digits,
)
from tracediff.present.answer import headline
from tracediff.present.sections import step_sums
from tracediff.report.page.script_data import tables
from tracediff.report.to_markdown import to_markdown
from tracediff.report.to_terminal import Screen, render
from tracediff.structs import SIDES

READ = {
    1: "1 ns",
    523: "523 ns",
    1_500: "1.50 µs",
    48_260: "48.3 µs",
    523_000: "523.0 µs",
    999_600: "1,000 µs",
    1_234_000: "1,234 µs",
    56_720_000: "56.7 ms",
    175_512_000: "175.5 ms",
    2_000_000_000: "2,000 ms",
    12_340_000_000: "12.3 s",
    1_000_000_000_000: "1,000 s",
}
"""Nanoseconds → what is read."""


def compared(folder, control_ns, test_ns, work_ns=0):
    """Two sets of one step each, which waits for its DataLoader but for an operator of ``work_ns``."""
    loading = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    paths = []
    for name, ns in (("control", control_ns), ("test", test_ns)):
        events = [
            step(1, 10, ns / 1000),
            annotation(loading, 10, ns / 1000),
            op("aten::add", 10, work_ns / 1000),
        ]
        paths.append(write(folder / name / "trace.json", document(events)))
    return compare_sets(*load_sets([str(p) for p in paths]))


@pytest.mark.parametrize("ns", READ)
def test_the_same_time_reads_the_same_everywhere(ns, tmp_path):
    comparison = compared(tmp_path, ns, ns, ns)
    plain, unit = READ[ns].split(" ")
    assert headline(comparison).split(": ")[1].startswith(f"{plain} → {plain} {unit}")
    console = Console(width=100, file=StringIO())
    console.print(render(comparison, Screen(top=0)))
    screen = console.file.getvalue()
    assert f"control/trace {unit} " in screen
    assert re.search(rf"^all operators +1 +{plain} +{plain} ", screen, re.MULTILINE)
    assert f"| **step** | {plain} | {plain} |" in to_markdown(comparison)

    bars = [text for trace in charts.step_waterfall(comparison).data for text in trace.text or ()]
    assert READ[ns] in bars

    step = step_sums(comparison)
    assert (step.unit.name, *step.whole.times(step.unit)[:2]) == (unit, plain, plain)
    given = tables(comparison, 1_000_000)["ops"]["unit"]  # what the page's script rounds by
    assert f"{ns / 1000 / given['size']:,.{given['decimals']}f} {given['name']}" == READ[ns]

    shown = str(rendered("step_table.html.jinja", step=step, unexplained_ns="0", names=SIDES, comparison=comparison))
    assert f" in {unit} per step" in shown
    assert f"'{plain}'" in shown
    shown_times = OF_TABS["groups"]["control_us"]
    column = changes.column(shown_times, time_unit([ns / 1000]), View(), SIDES)  # what the grid's script rounds by
    assert column["headerName"].endswith(f"({unit})")
    decimals = len(plain.partition(".")[2])
    assert column["valueFormatter"]["function"] == f"number(params.value, {decimals})"


@given(st.lists(st.floats(0, 1e6), max_size=8), st.sampled_from((0, 1, 2)))
def test_what_adds_up_does_so_as_it_is_shown(amounts, decimals):
    unit = Unit("ms", 1e3, decimals)
    rounded = closing(unit, amounts, sum(amounts))
    digits = [round(amount / unit.digit) for amount in rounded]
    assert sum(digits) == round(sum(amounts) / unit.digit)
    assert rounded == pytest.approx(amounts, abs=1.001 * unit.digit)
    assert [unit.plain(amount) for amount in rounded] == [unit.plain(n * unit.digit) for n in digits]
    assert all(digit == 0 for digit, amount in zip(digits, amounts, strict=True) if amount == 0)


def test_one_unit_for_all_numbers_of_a_table():
    unit = time_unit([175_512, -42_700, 12.5])
    assert [unit.plain(us) for us in (175_512, 12.5, 0, -4)] == ["175.5", "0.0", "0.0", "0.0"]
    assert [unit.signed(us) for us in (42_700, -42_700, 4, 0)] == ["+42.7", "−42.7", "0.0", "0.0"]
    assert unit.scaled(175_512) == 175.512
    assert time_unit([]).text(0) == "0 ns"
    assert byte_unit([4.49e9, 12]).text(12e6) == "0.01 GB"
    assert flop_unit([3.2e12]).text(1.6e12) == "1.60 TFLOP"


@pytest.mark.parametrize(
    ("amounts", "unit"),
    [
        ([175_512, 12_500, 0], "ms"),  # 12.5
        ([30e6, 950_000], "s"),  # 0.95, of 30.0: two digits
        ([30e6, 40_000], None),  # 0.04 of 30.0
        ([9_000, 94], "µs"),
        ([1_200e6, 5e6], None),  # 5 of 1,200
        ([0.7, 0.005], "ns"),  # 5 ns are exact
        ([], "ns"),
    ],
)
def test_a_common_unit_leaves_two_digits(amounts, unit):
    found = common_unit(time_unit, amounts)
    assert (found and found.name) == unit
    assert found in (None, time_unit(amounts))


def test_pairs_share_the_unit_of_the_larger():
    assert change(56_700, 590) == "56.7 → 0.6 ms"
    assert change(0, 2_490) == "0 → 2,490 µs"
    assert change(13.3e6, 410) == "13.3 s → 410.0 µs"  # not 0.0 s
    assert sizes(9.66e6, 88.3e6) == "9.7 → 88.3 MB"


def test_single_values():
    assert [signed_time(us) for us in (1240, -42_700, 0)] == ["+1,240 µs", "−42.7 ms", "0 ns"]
    assert [size(b) for b in (0, 512, 1536, 4.49e9)] == ["0 B", "512 B", "1.54 kB", "4.49 GB"]
    assert [percent(part) for part in (0, 0.0004, 0.032, 0.0996, 0.47, 1)] == [
        "0 %", "0.04 %", "3.2 %", "10 %", "47 %", "100 %",
    ]  # fmt: skip
    assert [signed_percent(part) for part in (0.51, -0.032, 0)] == ["+51 %", "−3.2 %", "0 %"]
    assert [PERCENT.signed(part) for part in (0.124, -0.032, 0)] == ["+12.4", "−3.2", "0.0"]
    assert [count(n) for n in (3, 1516, 5.25, -0.0)] == ["3", "1,516", "5.2", "0"]
    assert [signed_count(n) for n in (3, -3, 0)] == ["+3", "−3", "0"]
    assert [number(rate) for rate in (0, 0.0398, 4.8, 61, 99.96, 274.7, 1555.3)] == [
        "0", "0.0398", "4.80", "61.0", "100", "275", "1,555",
    ]  # fmt: skip
    assert time(9_999.5) == "10.0 ms"


@pytest.mark.parametrize(
    ("whole", "change", "shown"),
    [
        (22_900, 170, "+0.17 ms"),
        (22_900, 60, "+0.060 ms"),
        (22_900, 0.004, "+0.000004 ms"),  # a nanosecond has its digit, and no more
        (22_900, 3_000, "+3.0 ms"),
        (805, -0.5, "−0.50 µs"),
        (805, 0, "0.0 µs"),
    ],
)
def test_the_largest_change_of_a_table_has_two_digits(whole, change, shown):
    unit = with_digits(time_unit([whole]), [change / 3, change])
    assert f"{unit.signed(change)} {unit.name}" == shown


def test_a_mean_that_is_no_number_of_calls_is_of_steps_that_differ():
    assert counts_of(9, 14.3, "calls") == "9 → 14.3 calls on average"
    assert counts_of(9, 14, "calls") == "9 → 14 calls"
    assert counts_of(2.5, 2.5, "calls") == "2.5 calls on average"
