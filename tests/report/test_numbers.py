"""Numbers in the browser: the script of the pages writes each as `formatting` does."""

import random

import pytest

from tracediff import formatting
from tracediff.report.page.html import resource

EDGES = (
    0,
    0.5,
    1.5,
    2.5,
    0.125,
    0.375,
    0.25,
    0.75,
    1.005,
    9.994,
    9.995,
    99.95,
    999.5,
    999.6,
    9_994,
    9_999.5,
    9.9995e6,
    1e9,
)


def amounts() -> list[float]:
    """Edges of rounding and of units, ties, and numbers of every size, of both signs."""
    drawn = random.Random(7)
    sizes = [10 ** drawn.uniform(-6, 11) for _ in range(1500)]
    ties = [k / 8 for k in range(400)] + [1e6 + k / 4 for k in range(40)]
    counts = [drawn.randrange(10**7) / 10 for _ in range(300)]
    edges = [edge * 10**k for edge in EDGES for k in range(-4, 5)]
    return [sign * amount for amount in (*edges, *ties, *counts, *sizes) for sign in (1, -1)]


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    page.evaluate(resource("numbers.js"))
    yield page
    page.close()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("numbers.time(x)", formatting.time),
        ("numbers.signed(x, numbers.time(x))", formatting.signed_time),
        ("numbers.count(x)", formatting.count),
        ("numbers.signed(x, numbers.count(x))", formatting.signed_count),
        ("numbers.counts(x, 2)", lambda x: formatting.counts(x, 2)),
        ("numbers.plural(x, 'kernel')", lambda x: formatting.plural(x, "kernel")),
        ("numbers.percent(x)", formatting.percent),
        ("numbers.signed(x, numbers.percent(x))", formatting.signed_percent),
        ("numbers.plain(x, { size: 1000, decimals: 1 })", formatting.Unit("ms", 1000, 1).plain),
        (
            "numbers.signed(x, numbers.plain(x, { size: 1000, decimals: 2 }))",
            formatting.Unit("ms", 1000, 2).signed,
        ),
        ("numbers.p(x)", formatting.p_value),
        ("numbers.digits(x, 0)", formatting.Unit("", 1, 0).plain),
        ("numbers.digits(x, 1)", formatting.Unit("", 1, 1).plain),
        ("numbers.digits(x, 2)", formatting.Unit("", 1, 2).plain),
    ],
)
def test_the_browser_writes_numbers_as_python_does(page, script, expected):
    values = amounts()
    texts = page.evaluate(f"values => values.map((x) => {script})", values)
    assert texts == [expected(value) for value in values]
