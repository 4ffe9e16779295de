"""tracediff snapshot, and snapshots where sets are taken."""

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner
from tracediff_cli.group import cli

import tracediff
from tracediff.errors import TracediffError

SAMPLES = Path(__file__).parents[2] / "sample_traces"
EAGER, COMPILED = str(SAMPLES / "vit/eager"), str(SAMPLES / "vit/compile")


def run(*args):
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(
        cli, [str(a) for a in args], catch_exceptions=False, standalone_mode=False
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "base.tdprof.gz"
    result = run("snapshot", EAGER, "-o", path)
    assert result.return_value == 0
    assert result.stdout.startswith(f"wrote {path}: 2 files in ")
    assert [p.name for p in path.parent.iterdir()] == ["base.tdprof.gz"]
    return path


@pytest.mark.slow
def test_compare_and_export_take_it(base):
    from_traces = run("compare", EAGER, COMPILED, "--json", "-", "--step", "ctrl=5..6").stdout
    assert run("compare", base, COMPILED, "--json", "-", "--step", "ctrl=5..6").stdout == from_traces
    assert (
        run("export", base, COMPILED, "--folded", "-").stdout == run("export", EAGER, COMPILED, "--folded", "-").stdout
    )
    assert run("compare", base, COMPILED).stdout == run("compare", EAGER, COMPILED).stdout


@pytest.mark.slow
def test_the_library_takes_it(base):
    loaded = tracediff.load(base, label="before", skip_first=3)
    assert (loaded.label, loaded.steps_used) == ("before", loaded.steps_recorded[3:])
    assert tracediff.compare(base, COMPILED).to_json() == tracediff.compare(EAGER, COMPILED).to_json()


def test_it_holds_no_events(base):
    with pytest.raises(TracediffError) as caught:
        run("explain", COMPILED, base, "aten::mm", "--events")
    assert str(caught.value) == f"{base}: is a snapshot, which contains no events; give the traces instead"


@pytest.mark.hta
def test_hta_has_nothing_to_analyse_in_it(base):
    with pytest.raises(TracediffError, match="is a snapshot, which contains no events"):
        run("analyze", base, "--hta", "idle")


@pytest.mark.slow
def test_options(base, tmp_path):
    out = tmp_path / "renamed.tdprof.gz"
    run("snapshot", base, "-o", out, "--label", "v1", "--rank", "0")
    assert tracediff.load(out).label == "v1"
    with pytest.raises(TracediffError, match="no file of rank 3"):
        run("snapshot", EAGER, "-o", out, "--rank", "3")
    with pytest.raises(TracediffError, match="cannot be written"):
        run("snapshot", base, "-o", tmp_path / "missing" / "x.tdprof.gz")
    assert run("snapshot", base, "-o", "-").stdout_bytes == base.read_bytes()


@pytest.mark.slow
def test_own_families_are_those_of_the_time_it_was_made(tmp_path):
    rules, out = tmp_path / "families.toml", tmp_path / "own.tdprof.gz"
    rules.write_text('[[family]]\nname = "mine"\npatterns = ["^aten::mm$"]\n')
    run("snapshot", EAGER, "-o", out, "--families", rules)
    assert '"op:mine"' in gzip.decompress(out.read_bytes()).decode()
    text = run("compare", out, COMPILED, "--families", rules).stdout
    assert text == run("compare", EAGER, COMPILED, "--families", rules).stdout
