"""The gate: limits, settings, waivers, and what is decided of a figure."""

import math
from datetime import date

import pytest
from hypothesis import given, strategies as st

from tracediff.diff.gate.figures import Figure, spread_of_interval
from tracediff.diff.gate.judge import INCONCLUSIVE, PASS, REGRESSION, _judge, on_interval
from tracediff.diff.gate.limits import GateSettings, Limit, Waiver, parse_limit, read_settings, waiver_for
from tracediff.diff.statistics.runs import runs_to_detect, runs_to_separate
from tracediff.errors import TracediffError

TIMES = st.floats(1, 1e8)
LOGS = st.floats(-3, 3)
REACHES = st.floats(0, 2)
BOUNDS = st.tuples(st.floats(0, 2), st.floats(0, 1e6))


@pytest.mark.parametrize(
    ("text", "subject", "relative", "absolute"),
    [
        ("state:data_loading=10%,1ms", "state:data_loading", 0.1, 1000.0),
        ("family:gemm=5%,20us", "family:gemm", 0.05, 20.0),
        ("op:aten::copy_*=0%,0us", "op:aten::copy_*", 0.0, 0.0),
        ("op:void f<a=b>(int)=0.03,5µs", "op:void f<a=b>(int)", 0.03, 5.0),
        ("state:op:gemm=3%", "state:op:gemm", 0.03, 0.0),
        ("kernels=0", "kernels", 0.0, 0.0),
        ("kernels=0,2", "kernels", 0.0, 2.0),
        ("memory=2%,16MB", "memory", 0.02, 16e6),
        ("memory=2%,1GiB", "memory", 0.02, 2.0**30),
        ("graph-breaks=0", "graph-breaks", 0.0, 0.0),
    ],
)
def test_a_limit_is_read(text, subject, relative, absolute):
    assert parse_limit(text) == Limit(subject, pytest.approx(relative), pytest.approx(absolute))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kernels",
        "kernels=",
        "kernels=5",
        "kernels=-1%",
        "kernels=nan%",
        "kernels=0,2us",
        "memory=2%,16",
        "memory=1%,5ms",
        "step=3%",
        "state=5%",
        "state:waiting=5%",
        "family:=5%",
        "kernels:x=5%",
        "nothing=5%",
        "op:a=5%,5",
        "op:a=5%,1e9us",
        "op:a=5%,infus",
        "op:a=5%%",
    ],
)
def test_what_is_no_limit_is_an_error_of_one_line(text):
    with pytest.raises(TracediffError) as error:
        parse_limit(text)
    assert "\n" not in str(error.value)


@given(TIMES, LOGS, REACHES, BOUNDS)
def test_swapped_sides_are_never_both_a_regression(control, middle, reach, bound):
    limit = Limit("family:gemm", *bound)
    sides = (control, middle), (control * math.exp(middle), -middle)
    results = [on_interval(limit, base, (math.expm1(m - reach), math.expm1(m + reach))) for base, m in sides]
    assert results.count(REGRESSION) < 2


@given(st.integers(0, 10**6), st.integers(0, 10**6), BOUNDS)
def test_swapped_counts_are_never_both_a_regression(control, test, bound):
    limit = Limit("kernels", *bound)
    results = [
        _judge(limit, Figure("kernels", float(a), float(b), exact=True)).result
        for a, b in ((control, test), (test, control))
    ]
    assert results.count(REGRESSION) < 2
    assert INCONCLUSIVE not in results


@given(TIMES, LOGS, REACHES, BOUNDS, st.tuples(st.floats(0, 1), st.floats(0, 1e5)))
def test_a_looser_bound_never_decides_for_the_worse(control, middle, reach, bound, looser):
    interval = math.expm1(middle - reach), math.expm1(middle + reach)
    order = [PASS, INCONCLUSIVE, REGRESSION]
    tight = on_interval(Limit("step", *bound), control, interval)
    loose = on_interval(Limit("step", bound[0] + looser[0], bound[1] + looser[1]), control, interval)
    assert order.index(loose) <= order.index(tight)


@pytest.mark.parametrize(
    ("relative", "absolute", "result"),
    [
        (0.03, 0, REGRESSION),
        (0.03, 39, REGRESSION),
        (0.03, 41, INCONCLUSIVE),
        (0.03, 61, PASS),
        (0.05, 0, INCONCLUSIVE),
        (0.06, 0, PASS),
        (0.07, 0, PASS),
    ],
)
def test_both_parts_must_be_exceeded(relative, absolute, result):
    assert on_interval(Limit("step", relative, absolute), 1000.0, (0.04, 0.06)) == result


@pytest.mark.parametrize(
    ("control", "test", "absolute", "result"),
    [
        (100.0, 100.0, 0, PASS),
        (100.0, 0.0, 0, PASS),
        (0.0, 100.0, 0, INCONCLUSIVE),
        (100.0, 50.0, 0, INCONCLUSIVE),
        (3.0, 5.0, 0, INCONCLUSIVE),
        (3.0, 5.0, 10, PASS),
    ],
)
def test_a_time_without_an_interval(control, test, absolute, result):
    assert _judge(Limit("op:a", 0.0, absolute), Figure("op:a", control, test)).result == result


def test_a_step_without_an_interval_is_inconclusive_even_where_nothing_changed():
    assert _judge(Limit("step", 0.05), Figure("step", 100.0, 100.0)).result == INCONCLUSIVE


def test_one_op_of_many_needs_more_than_its_interval():
    limit = Limit("op:*", 0.01)
    assert _judge(limit, Figure("op:a", 100.0, 110.0, interval=(0.02, 0.2), spread=0.01, q=0.2)).result == INCONCLUSIVE
    assert _judge(limit, Figure("op:a", 100.0, 110.0, interval=(0.02, 0.2), spread=0.01, q=0.01)).result == REGRESSION


@pytest.mark.parametrize(("runs", "percent"), [(2, 5.8), (3, 3.1), (5, 2.05), (8, 1.5)])
def test_runs_that_detect_a_change_are_those_of_the_table(runs, percent):
    assert runs_to_detect(0.01, math.log1p(percent / 100) * 1.02) == runs
    assert runs_to_detect(0.01, math.log1p(percent / 100) * 0.95) == runs + 1


def test_runs_that_cannot_be_had():
    assert runs_to_detect(1.0, 1e-4) is None
    assert runs_to_separate(0.01, 0.0) is None
    assert spread_of_interval((-0.04, 0.06), 3, 3) > spread_of_interval((0.0, 0.02), 3, 3)


def test_the_waiver_that_lasts_longest_counts():
    short, long, other = (
        Waiver("op:*", "a", date(2026, 1, 1)),
        Waiver("op:aten::*", "b", date(2026, 6, 1)),
        Waiver("step", "c", date(2030, 1, 1)),
    )
    assert waiver_for("op:aten::mm", [short, long, other]) == long
    assert waiver_for("kernels", [short, long, other]) is None
    assert not long.has_expired(date(2026, 6, 1))
    assert long.has_expired(date(2026, 6, 2))


def test_settings_are_read(tmp_path):
    path = tmp_path / "tracediff.toml"
    path.write_text(
        '[check]\nmax_regression = 0.03\nmin_delta = "50us"\nallow = ["gpu"]\n'
        '[[check.limit]]\nsubject = "memory"\nrelative = "2%"\nabsolute = "16MB"\n'
        '[[check.limit]]\nsubject = "kernels"\nrelative = 0\nabsolute = 2\n'
        '[[check.waiver]]\npattern = "family:*"\nreason = "known"\nexpires = 2026-12-31\n'
    )
    limits = (Limit("step", 0.03, 50.0), Limit("memory", 0.02, 16e6), Limit("kernels", 0.0, 2.0))
    assert read_settings(path) == GateSettings(
        limits, frozenset({"gpu"}), (Waiver("family:*", "known", date(2026, 12, 31)),)
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[check",
        "[chekc]",
        "check = 1",
        "[check]\n[other]",
        "[check]\nmin-delta = 5",
        "[check]\nmin_delta = 5",
        "[check]\nmax_regression = true",
        "[check]\nmax_regression = nan",
        "[check]\nmax_regression = -0.1",
        "[check]\nmax_regression = 5",
        '[check]\nallow = "gpu"',
        '[check]\nallow = ["driver"]',
        "[check]\nlimit = 1",
        "[[check.limit]]\nsubject = 'kernels'",
        "[[check.limit]]\nrelative = 0",
        "[[check.limit]]\nsubject = 5\nrelative = 0",
        "[[check.limit]]\nsubject = 'kernels'\nrelative = [1]",
        "[[check.waiver]]\npattern = 'step'\nreason = 'x'",
        "[[check.waiver]]\npattern = 'step'\nreason = ''\nexpires = 2026-12-31",
        "[[check.waiver]]\npattern = 'step'\nreason = 'x'\nexpires = '2026-12-31'",
        "[[check.waiver]]\npattern = 'step'\nreason = 'x'\nexpires = 2026-12-31T00:00:00Z",
    ],
)
def test_faults_in_settings_are_one_line(tmp_path, text):
    path = tmp_path / "tracediff.toml"
    path.write_text(text)
    with pytest.raises(TracediffError) as error:
        read_settings(path)
    assert "\n" not in str(error.value)
    assert "tracediff.toml" in str(error.value)


def test_a_folder_or_nothing_is_no_settings(tmp_path):
    for path in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(TracediffError, match=r"a folder|no such file"):
            read_settings(path)
