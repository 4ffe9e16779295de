"""Health notes stay short on a screen and on a page, whatever a file holds; documents have all of them."""

import json
import sqlite3

import pytest
from build_trace import document, op, step, write
from click.testing import CliRunner
from nsys_file import write_nsys
from tracediff_cli.group import cli

from tracediff import bounds
from tracediff.ingest.model.health import Note, Notes

MANY = 300


def with_unread_tables(folder):
    """A database with many tables that no reader knows."""
    path = write_nsys(folder / "many.sqlite", [step(1, 0, 10), op("aten::mm", 1, 2)])
    with sqlite3.connect(path) as database:  # one transaction
        for k in range(MANY):
            name = f"CUPTI_ACTIVITY_KIND_{'X' * 150}{k}"
            database.execute(f"CREATE TABLE {name} (a)")
            database.execute(f"INSERT INTO {name} VALUES (1)")
    database.close()
    return path


def with_other_files(folder):
    """A folder with a trace among many files that are none."""
    write(folder / "set" / "trace.json", document([step(1, 0, 10), op("aten::mm", 1, 2)]))
    for k in range(100):
        (folder / "set" / f"{'x' * 200}{k}.json").write_text('{"a": 1}')
    return folder / "set"


@pytest.mark.parametrize(("make", "count"), [(with_unread_tables, MANY), (with_other_files, 100)])
def test_notes_of_files_that_cause_very_many_fit_a_screen(tmp_path, make, count):
    path, out = str(make(tmp_path)), tmp_path / "out"
    CliRunner().invoke(cli, ["analyze", path, "--json", str(out)])
    notes = json.loads(out.read_text())["health"]
    assert count in (notes[0]["count"], len([note for note in notes if note["code"] == "not-a-trace"]))
    for arguments in (["analyze", path], ["compare", path, path, "-v"]):
        printed = CliRunner().invoke(cli, [*arguments, "--markdown", str(out)]).output
        for text in (printed, out.read_text()):
            assert "Health of the traces" in text
            assert len(text) < bounds.NOTES * bounds.HEALTH_MESSAGE
            assert (f"{len(notes) - bounds.NOTES} more notes" in text) == (len(notes) > bounds.NOTES)


def test_messages_that_are_equal_once_cut_count_together():
    notes = Notes()
    for name in ("a", "b"):
        notes.add("odd", "x" * bounds.HEALTH_MESSAGE + name, 2)
    assert notes.list() == [Note("odd", "x" * (bounds.HEALTH_MESSAGE - 1) + "…", 4)]
    notes.add("odd", "y" * bounds.HEALTH_MESSAGE)
    assert notes.list()[1].message == "y" * bounds.HEALTH_MESSAGE
