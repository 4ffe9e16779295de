"""The published JSON Schemas: current, and every document that is written fits them."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
import traces
from build_trace import call, document, kernel, op, step, write
from click.testing import CliRunner
from json_schema import DOCUMENTS, file_name, published
from schema_validation import check_schema, validate
from tracediff_cli.group import cli
from traces import needs_traces

from tracediff.analysis import analyze_set
from tracediff.engine import LoadOptions, load_sets
from tracediff.explain.compare import compare_sets
from tracediff.profile.tables import NAMES, OF_FILES
from tracediff.profile.tables.schema import OVER_RANKS
from tracediff.report.analysis_json import to_json as analysis_json
from tracediff.report.to_json import to_json

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
SAMPLES = ROOT / "sample_traces"


def valid(text):
    """The document of ``text``, which fits the schema that it names."""
    found = json.loads(text, parse_constant=pytest.fail)
    validate(found, found["schema"])
    return found


def compared(control, test, force=False, tables=NAMES):
    """The documents of a comparison and of both of its sets."""
    sets = load_sets([str(control), str(test)], LoadOptions(tables=tables))
    for trace_set in sets:
        valid(analysis_json(analyze_set(trace_set)))
    return valid(to_json(compare_sets(*sets, force)))


def run(*args):
    result = CliRunner().invoke(cli, [str(a) for a in args], catch_exceptions=False, standalone_mode=False)
    return valid(result.stdout)


def on_gpu(folder, rank=0, world=1, name="gemm", **arguments):
    """A file of two steps, a kernel each, one kernel launched before the capture and one outside every step."""
    events = [
        kernel("early", 0, 5, correlation=99),
        step(1, 10, 100),
        op("aten::mm", 20, 30),
        call("cudaLaunchKernel", 22, 3, correlation=1),
        kernel(name, 40, 25, correlation=1, **arguments),
        step(2, 110, 100),
        op("aten::mm", 120, 30),
        call("cudaLaunchKernel", 122, 3, correlation=2),
        kernel(name, 140, 35, correlation=2, **arguments),
        call("cudaLaunchKernel", 222, 3, correlation=3),
        kernel("late", 230, 5, correlation=3),
    ]
    return write(
        folder / f"rank{rank}.json", document(events, distributedInfo={"rank": rank, "world_size": world})
    ).parent


def test_the_published_files_are_current():
    assert {p.name: p.read_text() for p in REFERENCE.glob("*.schema.json")} == published(), "run `make schemas`"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_published_file_is_a_json_schema(name):
    check_schema(json.loads((REFERENCE / file_name(name)).read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["vit/eager vit/compile", "ensemble/loop ensemble/vmap"])
def test_sample_traces(pair):
    control, test = pair.split()
    found = compared(SAMPLES / control, SAMPLES / test)
    assert found["host_time"]["groups"]
    assert found["tables"].keys() == {*OF_FILES}


@needs_traces
@pytest.mark.parametrize(("control", "test"), [*traces.PAIRS, ("dlrm_8ranks", "dlrm_8ranks")])
def test_real_pairs(control, test):
    found = compared(traces.FOLDER / control, traces.FOLDER / test, force=True)
    assert found["gpu_time"]["groups"]


def test_spilled_and_outside_events(tmp_path):
    found = compared(on_gpu(tmp_path / "a"), on_gpu(tmp_path / "b", name="other"))
    assert found["gpu_time"]["spilled"]["control_count"] == found["gpu_time"]["outside"]["test_count"] == 1


def test_several_ranks(tmp_path):
    known = {"Collective name": "allreduce", "In msg nelems": 10, "Group size": 2, "dtype": "Float"}
    for side in ("a", "b"):
        for rank in (0, 1):
            on_gpu(tmp_path / side, rank, 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", **known)
    tables = compared(tmp_path / "a", tmp_path / "b")["tables"]
    assert {*OVER_RANKS} <= tables.keys()
    assert tables["collective_waits"]


def test_refused_and_forced(tmp_path):
    gpu = on_gpu(tmp_path / "gpu")
    host = write(tmp_path / "host" / "rank0.json", document([step(1, 0, 10), op("aten::mm", 1, 2)])).parent
    refused = compared(gpu, host)
    assert refused["comparability"]["level"] == "refused"
    assert refused["gpu_time"]["groups"] == refused["ops"] == []
    assert refused["host_time"] is None
    assert compared(gpu, host, force=True)["ops"]


def test_no_steps(tmp_path):
    files = [write(tmp_path / side / "t.json", document([op("aten::mm", 1, us)])) for side, us in (("a", 2), ("b", 3))]
    assert compared(*files)["health"]["control"][0]["code"] == "no-steps"


def test_a_snapshot(tmp_path):
    base = tmp_path / "base.tdprof.gz"
    done = CliRunner().invoke(cli, ["snapshot", str(SAMPLES / "ensemble/loop"), "-o", str(base), "--table", "all"])
    assert done.exit_code == 0, done.output
    assert compared(base, SAMPLES / "ensemble/vmap")["tables"].keys() == {*OF_FILES}


@pytest.mark.parametrize("options", [[], ["--allow", "single-run"], ["--force", "--limit", "op:*=0%"]])
def test_checks(tmp_path, options):
    config = tmp_path / "limits.toml"
    config.write_text(
        '[[check.waiver]]\npattern = "op:*"\nreason = "known"\nexpires = 2999-12-31\n'
        '[[check.limit]]\nsubject = "memory"\nrelative = "1%"\n'
        '[[check.limit]]\nsubject = "kernels"\nrelative = "0"\n'
    )
    loop, vmap = SAMPLES / "ensemble/loop", SAMPLES / "ensemble/vmap"
    for pair in ((loop, vmap), (vmap, loop), (on_gpu(tmp_path / "a"), on_gpu(tmp_path / "b"))):
        assert run("check", *pair, "--config", config, *options, "--json", "-")["limits"]


@pytest.mark.slow
def test_a_matrix():
    found = run("matrix", *(SAMPLES / s for s in ("vit/eager", "vit/compile", "ensemble/loop")), "--json", "-")
    assert len(found["comparisons"]) == 2


@pytest.mark.parametrize("name", ["vit", "graph-breaks", "ensemble"])
def test_the_table_of_a_collection(name):
    assert len(run("collect", "--show", SAMPLES / name, "--json", "-")["rows"]) == 2


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ((), {"more": 1}),
        (("verdict",), {"result": "quicker"}),
        (("verdict",), {"p_value": "0.5"}),
        (("tables", "launches", 0), {"control_more": 1.0}),
        (("tables",), {"unknown": []}),
        (("ops", 0), {"p_value": ...}),
    ],
)
def test_another_key_another_value_and_a_missing_key_do_not_fit(path, change, tmp_path):
    from jsonschema import ValidationError

    found = compared(on_gpu(tmp_path / "a"), on_gpu(tmp_path / "b"))
    changed = deepcopy(found)
    place = changed
    for key in path:
        place = place[key]
    for key, value in change.items():
        if value is ...:
            del place[key]
        else:
            place[key] = value
    with pytest.raises(ValidationError):
        validate(changed, "tracediff.diff/1")
