"""Snapshots: a comparison from them is the comparison from the traces, they are small, hold nothing personal, and
damage is a one-line error.
"""

import gzip
import itertools
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
import traces
from build_trace import call, document, kernel, op, step, write
from hypothesis import given, strategies as st
from msgspec import Struct
from msgspec.structs import fields, replace
from properties import examples
from random_traces import scattered_events, trace_events

from tracediff.aggregate import snapshot
from tracediff.aggregate.snapshot import to_bytes, write_snapshot
from tracediff.aggregate.snapshot_columns import with_used_names
from tracediff.analysis import analyze_set
from tracediff.engine import LoadOptions, SetOptions, load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.ingest.discover import is_snapshot
from tracediff.ingest.files.source import TraceFile
from tracediff.profile.model.profile import Profile, TableRows
from tracediff.profile.model.selection import Selection
from tracediff.profile.tables import OF_FILES
from tracediff.report.analysis_json import to_json as analysis_json
from tracediff.report.to_json import to_json

SAMPLES = Path(__file__).parents[2] / "sample_traces"
REAL = [
    ("resnet50_workers0", "resnet50_workers4"),
    ("timesformer_h100", "timesformer_mi300"),
    ("tinylm_compile", "tinylm_cudagraph"),
    ("hta_sampled", "dlrm_8ranks"),
]
OWN = [("vit/eager", "vit/compile"), ("graph-breaks/eager", "graph-breaks/compile"), ("ensemble/loop", "ensemble/vmap")]
SETS = [
    *(pytest.param(folder, marks=traces.needs_traces) for folder in sorted({f.parent for f in traces.FILES})),
    *sorted(p.parent for p in SAMPLES.glob("*/*/manifest.json")),
]
LARGEST = 300_000


def answer(wheres, used=({}, {})):
    options = LoadOptions(tuple(SetOptions(label, **selected) for label, selected in zip("ab", used, strict=True)))
    return to_json(compare_sets(*load_sets([str(w) for w in wheres], options), force=True))


def snapshots_of(wheres, folder):
    """A snapshot of each set; of equal sets the same."""
    paths = {where: folder / f"{i}.tdprof.gz" for i, where in enumerate(dict.fromkeys(wheres))}
    for where, path in paths.items():
        write_snapshot(load_sets([str(where)])[0], path)
    return [paths[where] for where in wheres]


@traces.needs_traces
@pytest.mark.parametrize("pair", REAL, ids="-".join)
def test_real_pairs_differ_by_the_same(pair, tmp_path):
    pair = [traces.FOLDER / name for name in pair]
    saved, of_traces = snapshots_of(pair, tmp_path), answer(pair)
    assert answer(saved) == of_traces
    if pair[0] != pair[1]:
        assert answer([saved[0], pair[1]]) == answer([pair[0], saved[1]]) == of_traces


@pytest.mark.slow
@pytest.mark.parametrize("pair", OWN, ids="-".join)
def test_sample_pairs_differ_by_the_same(pair, tmp_path):
    pair = [SAMPLES / name for name in pair]
    assert answer(snapshots_of(pair, tmp_path)) == answer(pair)


@traces.needs_traces
@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("resnet50_workers0", [{"selection": Selection(first=6, last=7)}, {"selection": Selection(skip_first=0)}]),
        ("resnet50_workers0", [{"selection": Selection(skip_first=3)}, {}]),
        ("dlrm_8ranks", [{"ranks": frozenset({0, 5})}, {"ranks": frozenset({1, 7})}]),
        ("hta_sampled", [{"ranks": frozenset({1})}, {}]),
        ("hta_cpu_only", [{}, {"selection": Selection(skip_first=2)}]),
    ],
)
def test_steps_and_ranks_are_chosen_as_of_traces(name, used, tmp_path):
    pair = [traces.FOLDER / name] * 2
    assert answer(snapshots_of(pair, tmp_path), used) == answer(pair, used)


@examples(40)
@given(trace_events(), trace_events())
def test_any_pair_differs_by_the_same(tmp_path, a, b):
    pair = [
        write(tmp_path / f"{name}.json", document(events), layout="compact") for name, events in (("a", a), ("b", b))
    ]
    assert answer(snapshots_of(pair, tmp_path)) == answer(pair)


@pytest.mark.slow
@examples(150)
@given(scattered_events())
def test_what_is_written_is_read_back(tmp_path, events):
    path = write(tmp_path / "trace.json", document(events), layout="compact")
    (loaded,) = load_sets([str(path)], LoadOptions(tables=("launches", "copies", "memory_holders")))
    (tmp_path / "base.tdprof.gz").write_bytes(to_bytes(loaded))
    (restored,) = load_sets([str(tmp_path / "base.tdprof.gz")])
    assert to_bytes(restored) == to_bytes(loaded)
    assert_same(restored.profiles[0], loaded.profiles[0])


def test_an_operator_in_one_that_began_before_the_step_is_a_call_of_the_step(tmp_path):
    events = [step(1, 1000, 1000), op("aten::a", 500, 1500), op("aten::b", 1100, 10)]
    (loaded,) = load_sets([str(write(tmp_path / "trace.json", document(events)))])
    calls, names = loaded.profiles[0].calls, loaded.profiles[0].names
    assert [names[calls.name[node]] for node in calls.node.tolist()] == ["aten::b"]


@pytest.mark.slow
@pytest.mark.parametrize("where", SETS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_a_snapshot_is_small_and_the_same_each_time(where, tmp_path):
    (loaded,) = load_sets([str(where)])
    data = to_bytes(loaded)
    assert len(data) <= LARGEST
    path = tmp_path / "base.tdprof.gz"
    assert write_snapshot(loaded, path) == len(data)
    assert path.read_bytes() == data == to_bytes(load_sets([str(where)])[0])
    (restored,) = load_sets([str(path)])
    assert to_bytes(restored) == data
    assert restored.notes == loaded.notes
    assert restored.label == loaded.label
    assert [(r.name, list(r.ranks)) for r in restored.runs] == [(r.name, list(r.ranks)) for r in loaded.runs]
    for ours, theirs in zip(restored.profiles, loaded.profiles, strict=True):
        assert_same(ours, theirs)


def assert_same(restored, profile):
    """Every field is restored but what is made of events (timeline, order of collectives); unused names are left out,
    and the file lies in the snapshot.
    """
    whole = with_used_names(profile)
    assert replace(restored.origin, file=None) == replace(whole.origin, file=None)
    assert restored.origin.file.name == whole.origin.file.name
    assert restored.timeline is None
    assert restored.collectives is None
    for field in (f for f in fields(Profile) if f.name not in ("timeline", "collectives")):
        ours, theirs = getattr(restored, field.name), getattr(whole, field.name)
        if isinstance(theirs, Struct) and field.name != "origin":
            assert all(np.array_equal(getattr(ours, f.name), getattr(theirs, f.name)) for f in fields(theirs))
            arrays = [f.name for f in fields(theirs) if not isinstance(getattr(theirs, f.name), tuple)]
            assert all(getattr(ours, name).dtype == np.int64 for name in arrays)
        elif isinstance(theirs, np.ndarray):
            assert ours.dtype == np.int64
            assert np.array_equal(ours, theirs)
        elif field.name == "tables":
            assert ours.keys() == theirs.keys()
            assert all(
                np.array_equal(getattr(ours[n], f.name), getattr(theirs[n], f.name))
                for n in ours
                for f in fields(TableRows)
            )
        elif field.name != "origin":
            assert ours == theirs
    assert [restored.names[n] for n in restored.ops.name.tolist()] == [
        profile.names[n] for n in profile.ops.name.tolist()
    ]


def small(folder, name="rank0.json", numbers=(1, 2, 3), length=100):
    starts = itertools.count(0, length)
    events = [
        e
        for n in numbers
        for start in [next(starts)]
        for e in (step(n, start, length - 5), op("aten::mm", start + 10, 20, **{"Input Dims": [[2, 3]]}))
    ]
    return write(folder / name, document(events))


def saved(folder, **change):
    """A snapshot of a small set as its document, with ``change``."""
    path = folder / "base.tdprof.gz"
    small(folder / "set" / "run1")
    small(folder / "set" / "run2")
    write_snapshot(load_sets([str(folder / "set")])[0], path)
    found = json.loads(gzip.decompress(path.read_bytes())) | change
    path.write_bytes(gzip.compress(json.dumps(found).encode(), 1))
    return path, found


def test_a_rank_that_is_not_there_is_the_same_error(tmp_path):
    path, _ = saved(tmp_path)
    errors = []
    for where in (tmp_path / "set", path):
        with pytest.raises(TracediffError) as caught:
            load_sets([str(where)], LoadOptions((SetOptions(ranks=frozenset({7})),)))
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    with pytest.raises(TracediffError, match="no step is left"):
        load_sets([str(path)], LoadOptions((SetOptions(selection=Selection(first=50, last=60)),)))


def test_labels(tmp_path):
    path, _ = saved(tmp_path)
    today = tmp_path / "today"
    small(today)
    assert [t.label for t in load_sets([str(path), str(today)])] == ["set", "today"]
    assert [t.label for t in load_sets([str(path), str(tmp_path / "set")])] == ["base", "set"]
    assert [t.label for t in load_sets([str(path), str(today)], LoadOptions((SetOptions("mine"), SetOptions())))] == [
        "mine",
        "today",
    ]


def test_a_snapshot_is_known_by_its_content_and_is_a_set_by_itself(tmp_path):
    path, _ = saved(tmp_path)
    other = tmp_path / "base.json.gz"
    other.write_bytes(path.read_bytes())
    assert is_snapshot(TraceFile(str(other)))
    assert load_sets([[str(other)]])[0].label == "set"
    assert not is_snapshot(TraceFile(str(tmp_path / "set" / "run1" / "rank0.json")))
    assert not is_snapshot(TraceFile(str(tmp_path / "missing.json")))
    with pytest.raises(TracediffError, match="cannot be combined with traces; give it as a set of its own"):
        load_sets([[str(path), str(tmp_path / "set")]])


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("tracediff.snapshot/4", "a snapshot of version 4; this tracediff reads version 5"),
        ("tracediff.diff/1", "not a snapshot"),
        ("tracediff.snapshot/" + "9" * 5000, "not a snapshot"),
        (7, "damaged"),
    ],
)
def test_other_versions_and_documents(tmp_path, schema, reason):
    path, _ = saved(tmp_path, schema=schema)
    fails(path, reason)


def fails(path, reason=""):
    with pytest.raises(TracediffError) as caught:
        load_sets([str(path)])
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert reason in text
    assert text.isprintable()


def test_a_newer_version_is_reported_whatever_else_it_holds(tmp_path):
    path = tmp_path / "x.tdprof.gz"
    path.write_bytes(gzip.compress(b'{"schema":"tracediff.snapshot/12","columns":{"a":1}}'))
    fails(path, "a snapshot of version 12;")


def test_damaged_files(tmp_path):
    path, _ = saved(tmp_path)
    data = path.read_bytes()
    for part in (
        b"",
        b"\x1f",
        data[:10],
        data[: len(data) // 2],
        data[:-5],
        b"hello",
        gzip.compress(b""),
        gzip.compress(b"{"),
        gzip.compress(b"\xff\xfe"),
    ):
        path.write_bytes(part)
        fails(path)
    for position in range(20, len(data), 97):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :])
        fails(path)


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "MOST_BYTES", 1 << 20)
    path = tmp_path / "x.tdprof.gz"
    path.write_bytes(gzip.compress(b'{"schema":"tracediff.snapshot/2","label":"' + b" " * (2 << 20)))
    fails(path, "unpacks to more than 1 MB")
    monkeypatch.setattr(snapshot, "MOST_BYTES", 256 << 20)
    path.write_bytes(gzip.compress(b'{"schema":"tracediff.snapshot/2","label":"' + b" " * (8 << 20)))
    fails(path, "unpacks to more than 4 MB")
    path.write_bytes(gzip.compress(b'{"schema":"tracediff.snapshot/2","x":' + b"[" * 500_000))
    fails(path, "damaged")
    small(tmp_path / "set")
    monkeypatch.setattr(snapshot, "MOST_BYTES", 100)
    with pytest.raises(TracediffError, match="too large for a snapshot"):
        to_bytes(load_sets([str(tmp_path / "set")])[0])


def lists_of(value, path=()):
    """Paths of all lists and dictionaries in a document."""
    if isinstance(value, list | dict):
        yield path
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from lists_of(inner, (*path, key))


def changed(found, path, change):
    """A copy of the document with the part at ``path`` changed."""
    copy = json.loads(json.dumps(found))
    part = copy
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = change(part[path[-1]])
    return copy


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda part: part[:-1] if isinstance(part, list) else {},
        lambda part: [*part, *part] if isinstance(part, list) else None,
        lambda part: [v + 1000 if isinstance(v, int) else v for v in part] if isinstance(part, list) else part,
        lambda part: [v - 1000 if isinstance(v, int) else v for v in part] if isinstance(part, list) else part,
        lambda part: [2**70 if isinstance(v, int) else v for v in part] if isinstance(part, list) else part,
        lambda _: [],
        lambda _: "text",
    ],
)
def test_no_document_makes_a_comparison_fail_but_by_an_error(tmp_path, change):
    path, found = saved(tmp_path)
    for where in [p for p in lists_of(found) if p]:
        path.write_bytes(gzip.compress(json.dumps(changed(found, where, change)).encode(), 1))
        try:
            loaded = load_sets([str(path)] * 2)
        except TracediffError:
            continue
        to_json(compare_sets(*loaded, force=True))


def on_gpu(folder):
    """A snapshot of a set with GPU events and every table, as its document."""
    events = []
    for k in range(3):
        start = 100 * k
        events += [
            step(k, start, 90),
            op("aten::mm", start + 2, 20, **{"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}),
            call("cudaLaunchKernel", start + 5, 4, correlation=k),
            kernel("gemm", start + 20, 10, correlation=k),
        ]
    path = folder / "base.tdprof.gz"
    traced = write(folder / "set" / "rank0.json", document(events, distributedInfo={"rank": 0, "world_size": 1}))
    write_snapshot(load_sets([str(traced)], LoadOptions(tables=OF_FILES))[0], path)
    return path, json.loads(gzip.decompress(path.read_bytes()))


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("host_ns", 0), -1, "run 1, rank 0, rank0.json: host_ns has -1, less than 0"),
        (("host_ns", 0), 0.5, "Expected `int`, got `float` - at `$[0]` - at `$.runs[...][...][0].host_ns`"),
        (("draining_ns",), -1, "Expected `int` >= 0 - at `$.runs[...][...][0].draining_ns`"),
        (("kernels", "count", 0), 0, "kernels.count has 0, less than 1"),
        (("kernels", "total_ns", 0), 1, "kernels and the GPU events in ops do not add up"),
        (("calls", "self_ns", 0), 1, "calls and ops do not add up"),
        (("busy_ns", 0), 10**6, "busy_ns is more than the GPU events"),
        (("owned", "ns", 0), 1, "the owners of a GPU state do not add up to it"),
        (("state_ns", 0, 0), 1, "the states of a step do not add up to it"),
        (("ops", "self_ns", 0), 10**9, "ops: self_ns > total_ns"),
        (("ops", "self_ns", -1), 0, "ops: the self time of a GPU event is not its time"),
        (("ops", "total_ns", 0), 2**63 - 1, "needs more than 64 bits"),
        (
            ("calls", "ordinal", 0),
            2**63 - 1,
            "calls.ordinal has 9223372036854775807, which is not below 9007199254740992",
        ),
        (("step_numbers", 0), 1, "step_numbers has a duplicate"),
        (("completions", 3), 0, "a step ends before it begins"),
        (("calls", "parent", 2), 1, "the phases are not the roots"),
        (("kernels", "node", 0), 99, "kernels.node refers to nothing"),
        (("origin", "world_size"), -8, "world_size or gpu_count is negative"),
        (("origin", "gpu_count"), 1 << 40, "negative or too large"),
        (("events", "kernel"), 1, "events: fewer than ops has"),
        (("texts", 0), "[[2, ", "is not a list of"),
        (("tables", "launches", "values", 0, 0), -1, "is negative"),
        (("notes",), [{"code": "x", "message": "y", "count": -1}], "notes: a count below 1"),
    ],
)
def test_an_account_that_does_not_close_is_an_error_that_names_its_place(tmp_path, place, value, reason):
    path, found = on_gpu(tmp_path)
    where = ("runs", "run 1", "0", 0, *place)
    path.write_bytes(json.dumps(changed(found, where, lambda _: value)).encode())
    fails(path, reason)


ODD = [
    *(None, True, -1, 0, 1, 1 << 31, 1 << 62, (1 << 63) - 1, 1 << 63, -(1 << 63), 10**30, 0.5, 1e308),
    *("", "²", "\x00\n\u202e", "[1", "[[-1]]", [], {}, [[]], [None], {"a": 1}),
]


@pytest.mark.slow
@examples(1000)
@given(st.data())
def test_a_mutated_snapshot_is_a_line_or_closes(tmp_path, data):
    good = tmp_path / "base.tdprof.gz"  # the folder is the same for all examples
    if not good.exists():
        on_gpu(tmp_path)
    found = json.loads(gzip.decompress(good.read_bytes()))
    where = data.draw(st.sampled_from([p for p in places_of(found) if p]))
    change = data.draw(st.sampled_from(["delete", "repeat", "shorten", "negate", *range(len(ODD))]))
    path = tmp_path / "mutated.tdprof.gz"
    path.write_bytes(json.dumps(mutated(found, where, change)).encode())
    control, loaded = load_sets([str(good)])[0], loaded_or_line(path)
    if isinstance(loaded, str):
        assert loaded.startswith(f"{path}: ")
        assert loaded.isprintable()
        return
    compared = json.loads(to_json(compare_sets(control, loaded, force=True)))
    assert compared["step_time"]["residual_us"] == 0
    to_bytes(loaded)


def loaded_or_line(path):
    try:
        return load_sets([str(path)])[0]
    except TracediffError as error:
        return str(error)


def places_of(value, path=()):
    """Paths of all values in a document."""
    yield path
    if isinstance(value, list | dict):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_of(inner, (*path, key))


def mutated(found, where, change):
    part = found
    for key in where[:-1]:
        part = part[key]
    old = part[where[-1]]
    if change == "delete":
        del part[where[-1]]
    elif change == "repeat":
        part[where[-1]] = old + old[-1:] if isinstance(old, list | str) else [old, old]
    elif change == "shorten":
        part[where[-1]] = old[:-1] if isinstance(old, list | str) else old // 2 if isinstance(old, int) else None
    elif change == "negate":
        part[where[-1]] = -old if isinstance(old, int | float) else old
    else:
        part[where[-1]] = ODD[change]
    return found


def test_nothing_personal_is_in_it(tmp_path):
    where = tmp_path / "home-of-zebediah" / "set"
    small(where / "run1")
    manifest = msgspec.json.decode((SAMPLES / "graph-breaks/compile/manifest.json").read_bytes())
    manifest["git_commit"] = "0123abcd"
    manifest["target"] = "/home/zebediah/my.py:make_step"
    manifest["environment"]["host"] = "zebediah-laptop"
    manifest["runs"][0]["compile"]["graph_breaks"][0]["file"] = "/home/zebediah/model.py"
    (where / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    (loaded,) = load_sets([str(where)])
    text = gzip.decompress(to_bytes(loaded)).decode()
    assert "rank0.json" in text
    assert "model.py" in text
    assert "my.py:make_step" in text
    for word in ("zebediah", "0123abcd", "2.13.0+cpu", "/run1", str(tmp_path)):
        assert word not in text


def test_a_snapshot_has_the_further_tables_it_was_made_with(tmp_path):
    events = []
    for k in range(4):
        start = 100 * k
        events += [
            step(k, start, 90),
            call("cudaLaunchKernel", start + 5, 4, correlation=k),
            kernel("a", start + 20, 10, correlation=k),
        ]
    path = write(tmp_path / "trace.json", document(events))
    (loaded,) = load_sets([str(path)], LoadOptions(tables=OF_FILES))
    snapshot = tmp_path / "base.tdprof.gz"
    write_snapshot(loaded, snapshot)
    (restored,) = load_sets([str(snapshot)])
    assert_same(restored.profiles[0], loaded.profiles[0])
    assert restored.profiles[0].tables.keys() == set(OF_FILES)
    assert analysis_json(analyze_set(restored)) == analysis_json(analyze_set(loaded))


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"step": [9]}, "launches.step refers to nothing"),
        ({"key": [-1]}, "launches.key refers to nothing"),
        ({"step": []}, "launches has columns of different lengths"),
        ({"keys": [["x"], ["x"]]}, "launches has a duplicate key"),
        ({"values": [[10**30, 1, 1, 1, 1, 1]]}, "a number needs more than 64 bits"),
        ({"values": [[1, 1, 1, 1, 1, 1], [1]], "step": [0, 1], "key": [0, 0]}, "inhomogeneous shape"),
    ],
)
def test_a_damaged_further_table_is_an_error(tmp_path, part, reason):
    path, found = on_gpu(tmp_path)
    good = {"keys": [["x"]], "step": [0], "key": [0], "values": [[1, 1, 1, 1, 1, 1]]}
    other = good | {"values": [[1, 1, 1]]}
    where = ("runs", "run 1", "0", 0, "tables")
    tables = {"launches": good, "copies": other | {"values": [[1]]}, "of tomorrow": other}
    path.write_bytes(json.dumps(changed(found, where, lambda _: tables)).encode())
    assert load_sets([str(path)])[0].profiles[0].tables.keys() == {"launches"}
    path.write_bytes(json.dumps(changed(found, where, lambda _: {"launches": good | part})).encode())
    fails(path, reason)


def test_what_a_snapshot_does_not_hold_is_not_read_from_one(tmp_path):
    path, found = on_gpu(tmp_path)
    assert found["runs"]["run 1"]["0"][0].keys().isdisjoint(("timeline", "collectives"))
    where = ("runs", "run 1", "0", 0)
    more = {"timeline": {"step": 1, "start": 0, "end": 1, "data": "gASVAAAAAAAAAAA="}, "collectives": 7}
    path.write_bytes(json.dumps(changed(found, where, lambda accounts: accounts | more)).encode())
    (profile,) = load_sets([str(path)])[0].profiles
    assert profile.timeline is None
    assert profile.collectives is None
