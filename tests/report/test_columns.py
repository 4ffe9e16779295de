"""The columns of each table, in one list: JSON, CSV and the HTML page of a real pair have these and no others."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from page_data import page_data

import tracediff
from tracediff.diff.statistics.many import UNTESTED
from tracediff.present.columns import FRAME, GRID, OPS, PAGE as PAGE_COLUMNS
from tracediff.report.page.html import to_html
from tracediff.report.rows import to_csv
from tracediff.report.to_json import to_json

ROOT = Path(__file__).parents[2]
PAIR = [ROOT / "sample_traces" / "ensemble" / name for name in ("loop", "vmap")]
JSON, CSV, PAGE = "json", "csv", "page"
COLUMNS = {
    "step_time": {
        "name": {JSON, CSV},
        "control_us": {JSON, CSV},
        "test_us": {JSON, CSV},
        "delta_us": {JSON, CSV},
        "time_change": {JSON},
        "p_value": {JSON},
        "q_value": {JSON},
    },
    "groups": {
        "level": {JSON, CSV, PAGE},
        "name": {JSON, CSV, PAGE},
        "kernels": {PAGE},
        "family": {JSON, CSV, PAGE},
        "module": {JSON, CSV, PAGE},
        "phase": {JSON, CSV, PAGE},
        "lines": {JSON, CSV, PAGE},
        "control": {JSON, PAGE},  # in the CSV members are a table of their own
        "test": {JSON, PAGE},
        "all_members": {PAGE},  # their number: the page has the largest
        "control_ops": {JSON},
        "test_ops": {JSON},
        "operator": {PAGE},
        "shapes": {PAGE},
        "control_count": {CSV, PAGE},
        "test_count": {CSV, PAGE},
        "control_us": {CSV, PAGE},
        "test_us": {CSV, PAGE},
        "delta_us": {JSON, CSV, PAGE},
        "count_part_us": {JSON, CSV, PAGE},
        "mean_part_us": {JSON, CSV, PAGE},
    },
    "members": {
        "group": {CSV},  # in the JSON members are in their group, by side
        "side": {CSV},
        "name": {JSON, CSV},
        "raw_name": {JSON, CSV},
        "op": {JSON, CSV},
        "family": {JSON, CSV},
        "count": {JSON, CSV},
        "us": {JSON, CSV},
        "first": {JSON},  # file, time and track of an event
    },
    "ops": {
        "name": {JSON, CSV, PAGE},
        "raw_name": {JSON, CSV, PAGE},
        "device": {JSON, CSV},
        "category": {JSON, CSV, PAGE},
        "family": {JSON, CSV, PAGE},
        "control_count": {JSON, CSV, PAGE},
        "test_count": {JSON, CSV, PAGE},
        "control_total_us": {JSON, CSV, PAGE},
        "test_total_us": {JSON, CSV, PAGE},
        "control_self_us": {JSON, CSV, PAGE},
        "test_self_us": {JSON, CSV, PAGE},
        "delta_count": {JSON, CSV},
        "delta_us": {JSON, CSV},  # of total time
        "delta_self_us": {PAGE},
        "count_change": {JSON, CSV},
        "time_change": {JSON, CSV, PAGE},
        "p_value": {JSON, CSV, PAGE},
        "q_value": {JSON, CSV, PAGE},
        "relative": {JSON},
        "counts_vary": {JSON},
    },
    "tree": {  # of which the page has a flame graph
        "parent": {CSV},
        "depth": {CSV},
        "kind": {CSV},
        "name": {CSV},
        "shapes": {CSV},
        "side": {CSV},
        "control_count": {CSV},
        "test_count": {CSV},
        "control_host_us": {CSV},
        "test_host_us": {CSV},
        "control_us": {CSV},
        "test_us": {CSV},
        "delta_us": {CSV},
    },
    "steps": {"side": {CSV}, "run": {CSV}, "step": {CSV}, "rank": {CSV}, "period_us": {CSV}},
    "health": {"side": {CSV}, "code": {JSON, CSV}, "message": {JSON, CSV}, "count": {JSON, CSV}},
}
"""Table → column → the formats that have it."""
SHOWN = {
    "ops": ["name", "category", "family", "count", "loop", "vmap", "change", "significance"],
    "groups": ["name", "kernels", "family", "module", "count", "loop", "vmap", "change"],
}
"""Headings of the page's tables, of which those of the sides are their names."""
HEADINGS = [
    ["Why (total: also what other work hides)", "total (µs)", "adds to step"],
    ["state", "loop", "vmap", "change"],
    ["name", "calls", "loop", "vmap", "change"],
]
"""Of the page's short tables."""
TABLES = ["idle", "critical", "rates"]


@pytest.fixture(scope="module")
def comparison():
    return tracediff.compare(*PAIR, tables=TABLES).comparison


@pytest.fixture(scope="module")
def document(comparison):
    return json.loads(to_json(comparison))


@pytest.fixture(scope="module")
def page(comparison):
    return to_html(comparison)


@pytest.fixture(scope="module")
def page_tables(page):
    return page_data(page)


def listed(table, in_format):
    return [column for column, formats in COLUMNS[table].items() if in_format in formats]


def csv_tables(comparison):
    return {name.removesuffix(".csv"): list(csv.reader(io.StringIO(text))) for name, text in to_csv(comparison).items()}


def json_rows(document):
    groups = document["host_time"]["groups"]
    return {
        "step_time": document["step_time"]["states"],
        "groups": groups,
        "members": [member for group in groups for member in (*group["control"], *group["test"])],
        "ops": document["ops"],
    }


def test_csv(comparison):
    tables = csv_tables(comparison)
    assert {name: head for name, (head, *_) in tables.items() if not name.startswith("table_")} == {
        name: listed(name, CSV) for name in COLUMNS
    }


def test_json(document):
    for table, rows in json_rows(document).items():
        assert rows, table
        assert {frozenset(row) for row in rows} == {frozenset(listed(table, JSON))}, table
    published = json.loads((ROOT / "docs/reference/tracediff.diff-1.schema.json").read_text())["$defs"]
    assert [*published["Note"]["properties"]] == listed("health", JSON)


def test_further_tables_have_the_published_columns_in_json_and_csv(comparison, document):
    published = json.loads((ROOT / "docs/reference/tracediff.diff-1.schema.json").read_text())
    of_tables = published["$defs"]["DiffDocument"]["properties"]["tables"]["properties"]
    tables = csv_tables(comparison)
    for name in TABLES:
        columns = [*of_tables[name]["items"]["properties"]]
        assert document["tables"][name], name
        assert [*document["tables"][name][0]] == tables[f"table_{name}"][0] == columns


def test_a_screen_leaves_untested_significance_empty_but_no_name(comparison):
    op = replace(comparison.ops[0], counted_as="untested", significance=UNTESTED)
    for output, shown in ((PAGE_COLUMNS, ""), (GRID, ""), (FRAME, "untested")):
        row = dict(zip((c.name for c in OPS.of[output]), OPS.values(output, comparison, op), strict=True))
        assert (row["name"], row["time_change"]) == ("untested", shown)


@pytest.mark.slow
def test_page_and_its_values(page_tables, document):
    for table in ("ops", "groups"):
        assert {*page_tables[table]["columns"]} == {*listed(table, PAGE)}, table
        assert [title for _, title, _, _ in page_tables[table]["shown"]] == SHOWN[table]
    ops = {(op["category"], op["raw_name"]): op for op in document["ops"]}
    texts = page_tables["names"]
    for values in page_tables["ops"]["rows"]:
        row = dict(zip(page_tables["ops"]["columns"], values, strict=True))
        op = ops[texts[row["category"]], texts[row["raw_name"]]]
        for column in listed("ops", PAGE):
            if column in op and not isinstance(op[column], str):
                assert row[column] == pytest.approx(op[column], abs=1e-6), column
        assert row["delta_self_us"] == pytest.approx(op["test_self_us"] - op["control_self_us"], abs=1e-6)


def test_headings_of_the_page(page):
    heads = re.findall(r"<thead>.*?</thead>", page, re.DOTALL)
    found = [[title for title in re.findall(r"<th[^>]*>([^<]*)</th>", head) if title] for head in heads]
    assert [head for head in HEADINGS if head not in found] == []
