"""Tables as people read them: units, headings, and which columns a terminal shows."""

from io import StringIO

from build_trace import call, document, kernel, memory, op, step, write
from rich.console import Console

import tracediff
from tracediff.collected import CollectionTable, VariantRow
from tracediff.present.plain_text import Table
from tracediff.present.tables import comparison_tables, control_and_test
from tracediff.profile.tables import NAMES, table_schema
from tracediff.report.analysis import tables_of
from tracediff.report.collection import show as show_collection, to_markdown as collection_markdown
from tracediff.report.table_terminal import to_rich
from tracediff.report.to_markdown import section_lines

TITLES = {"gaps": "GPU gaps", "critical": "Critical path"}


def memory_trace(path, host_bytes, gpu_bytes=400_000_000):
    events = [
        step(1, 0, 100),
        op("aten::empty", 5, 50),
        memory(10, gpu_bytes, gpu_bytes),
        memory(20, host_bytes, host_bytes, device=-1, **{"Device Type": 0}),
    ]
    return write(path, document(events))


def by_head(table, row):
    return dict(zip(table.heads, table.rows[row], strict=True))


def test_bytes_share_a_unit_only_if_it_leaves_each_two_digits(tmp_path):
    paths = [memory_trace(tmp_path / f"{size}.json", size) for size in (16, 250_000_000)]
    far, near = (tables_of(tracediff.analyze(path, tables=["memory"]).analysis)["memory"] for path in paths)
    assert by_head(near, 1)["peak allocated (MB)"] == "250.0"
    assert [row[:2] for row in far.rows] == [(far.rows[0][0], "400.0 MB"), (far.rows[1][0], "16 B")]
    assert "peak allocated" in far.heads
    assert by_head(far, 1)["freed (B)"] == "0"


def test_both_sides_of_an_amount_share_their_unit_where_it_is_the_same(tmp_path):
    paths = [memory_trace(tmp_path / "a.json", 16), memory_trace(tmp_path / "b.json", 2_000, 420_000_000)]
    (table,) = comparison_tables(tracediff.compare(*paths, tables=["memory"]).comparison)
    rows = {row[1]: row for row in table.rows}
    assert rows["400.0 MB"][1:4] == ("400.0 MB", "420.0 MB", "+20.0 MB")
    assert rows["16 B"][1:4] == ("16 B", "2.00 kB", "+1.98 kB")
    assert by_head(table, 0)["allocated at the end"] == "400.0 → 420.0 MB"
    assert by_head(table, 1)["allocated at the end"] == "16 B → 2.00 kB"
    assert control_and_test("–", "51 %") == "– → 51 %"
    assert control_and_test("3", "5") == "3 → 5"


def launched(path):
    events = [step(1, 0, 100), op("aten::mm", 0, 30), call("cudaLaunchKernel", 20, 5, correlation=1)]
    return write(path, document([*events, kernel("gemm", 40, 50, correlation=1)]))


def test_states_and_headings_are_words_and_raw_in_data(tmp_path):
    path = launched(tmp_path / "a.json")
    analysis = tracediff.analyze(path, tables=["gaps", "critical"])
    diff = tracediff.compare(path, path, tables=["gaps", "critical"])
    for tables in (tables_of(analysis.analysis), {t.title: t for t in comparison_tables(diff.comparison)}):
        gaps, critical = (tables.get(key) or tables[title] for key, title in TITLES.items())
        assert gaps.heads[:3] == ("gpu", "waits for", "state")
        assert {row[1:3] for row in gaps.rows} == {
            ("busy", "GPU compute"),
            ("launch", "idle: launched, not started"),
            ("launch", "idle: launching"),
            ("host", "idle: in an op"),
            ("host", "idle: in Python"),
        }
        assert {row[:2] for row in critical.rows} >= {("GPU compute", "gemm"), ("in an op", "aten::mm")}
    for frame in (analysis.table("gaps"), diff.table("gaps")):
        assert "waits_for" in frame
        assert "gpu_compute" in set(frame["state"])
    assert "gpu_compute" in set(analysis.table("critical")["kind"])


def test_no_heading_has_an_underscore(tmp_path):
    tables = tables_of(tracediff.analyze(launched(tmp_path / "a.json"), tables=["all"]).analysis)
    assert len(tables) > 10
    assert not [head for table in tables.values() for head in table.heads if "_" in head]
    columns = [(*table_schema(name).columns, *table_schema(name).rates) for name in NAMES]
    assert not [c.title for of_table in columns for c in of_table if "_" in c.title]


def test_a_collection_shows_two_digits_of_every_value():
    rows = [
        VariantRow(variant="eager", runs=2, first_step_s=0.0123, step_us=62_600, iqr_us=44, peak_bytes=440_000_000),
        VariantRow(variant="compile", runs=2, first_step_s=30.0, step_us=61_600, iqr_us=51, peak_bytes=500_000_000),
    ]
    lines = collection_markdown(CollectionTable("vit", "tiny", {}, rows)).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    eager, compiled = (dict(zip(cells[0], row, strict=True)) for row in cells[2:])
    assert (eager["first"], compiled["first"]) == ("12.3 ms", "30.0 s")
    assert (eager["step ms"], compiled["step ms"]) == ("62.6", "61.6")
    assert (eager["IQR µs"], compiled["IQR µs"]) == ("44.0", "51.0")
    assert eager["peak MB"] == "440.0"


def test_a_collection_fits_a_terminal_and_names_the_columns_that_do_not():
    rows = [
        VariantRow(variant="eager", runs=2, build_s=1.5, first_step_s=0.0123, step_us=62_600, iqr_us=44, kernels=12),
        VariantRow(variant="compile+a_long_change", runs=2, build_s=2.5, first_step_s=30.0, step_us=61_600, iqr_us=51),
    ]
    for width in (40, 60, 200):
        console = Console(file=StringIO(), width=width)
        show_collection(CollectionTable("vit", "tiny", {}, rows), console)
        lines = console.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        assert lines[1].split()[:3] == ["variant", "step", "ms"]
        assert ("columns omitted: " in " ".join(lines)) == (width < 200)
        assert ("runs" in lines[1]) == (width == 200)


def shown(table, width):
    console = Console(file=StringIO(), width=width)
    console.print(to_rich(table))
    return console.file.getvalue()


def test_a_terminal_has_no_room_for_columns_without_values():
    table = Table(
        title="Collectives",
        heads=("collective", "group", "time (ms)", "bandwidth", "bus bandwidth", "operations", "bytes"),
        texts=2,
        rows=(("all_reduce", "unknown", "1.2", "–", "–", "3", "0"), ("broadcast", "", "0.0", "–", "1.5", "0", "0")),
    )
    wide = shown(table, 100)
    assert wide.splitlines()[1].split() == ["collective", "time", "(ms)", "bus", "bandwidth", "operations", "bytes"]
    assert "omitted" not in wide
    narrow = shown(table, 45).splitlines()
    assert narrow[1].split() == ["collective", "time", "(ms)", "bus", "bandwidth"]
    assert " ".join(narrow[4:]).split("(widen")[0].split() == ["columns", "omitted:", "operations,", "bytes"]
    assert "| collective | group | time (ms) | bandwidth |" in section_lines(table)[2]


def test_a_table_of_unknown_values_keeps_its_first_columns():
    table = Table(title="Counters", heads=("counter", "mean"), rows=(("unknown", "–"),))
    assert shown(table, 80).splitlines()[1].split() == ["counter", "mean"]
