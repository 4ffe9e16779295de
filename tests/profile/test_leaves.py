"""The leaves of each step, against a slow and plain reference, and on real traces."""

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from build_trace import annotation, call, document, kernel, op, step, write
from hypothesis import given, strategies as st
from leaf_reference import LeafWalk
from msgspec.structs import fields
from one_file import profile_file
from properties import examples
from random_traces import long_trace_events, scattered_events, trace_events
from traces import FILES, NAMES, needs_traces

from tracediff import bounds
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.json.chunks import CHUNK
from tracediff.ingest.read import read_trace
from tracediff.profile.analyses.leaf_keys import KINDS
from tracediff.profile.build import build_profile

KEYS = ("step", "kind", "name", "op", "root")
SOME = [name for name in NAMES if "resnet50_workers4" in name or "tinylm_compile" in name]


def profile_of(path):
    return profile_file(TraceFile(str(path)))


def spelled(profile, names=("path_ns", "total_ns")):
    """{(step, kind, name, operator, outermost operator): sums}; GPU events of one name are one."""
    table = profile.leaves
    text = ["", *profile.names]
    out = {}
    for position, kind, *codes in zip(*(getattr(table, name).tolist() for name in (*KEYS, *names)), strict=True):
        key = position, KINDS[kind], *(text[code + 1] for code in codes[:3])
        out[key] = tuple(a + b for a, b in zip(out.get(key, (0,) * len(names)), codes[3:], strict=True))
    return out


def summed(profile):
    """The rows in words, without the codes that depend on the order of the file."""
    table = profile.leaves
    text = ["", *profile.names]
    rows = zip(*(getattr(table, f.name).tolist() for f in fields(table)), strict=True)
    names = [f.name for f in fields(table)]
    coded = ("name", "op", "root", "following")
    left_out = ("node", "launch_shape")
    return Counter(
        tuple(text[v + 1] if n in coded else v for n, v in zip(names, row, strict=True) if n not in left_out)
        for row in rows
    )


@examples(150)
@given(long_trace_events(), st.randoms())
def test_any_trace_agrees_with_the_slow_reference_and_closes(tmp_path, events, random):
    random.shuffle(events)
    path = write(tmp_path / "trace.json", document(events), layout="compact")
    profile, plain = profile_of(path), LeafWalk(path)
    assert spelled(profile) == plain.leaves()
    if profile.has_gpu:  # without, each call is a leaf, and those without time of their own are left out
        counts = {k: n for k, (n,) in spelled(profile, ("count",)).items() if k[1] in ("gpu", "op", "call", "sync")}
        assert counts == {k: plain.instances[k] for k in counts}
    on_path = np.zeros(len(profile.periods), np.int64)
    np.add.at(on_path, profile.leaves.step, profile.leaves.path_ns)
    assert on_path.tolist() == profile.periods.tolist()


@examples(60)
@given(scattered_events(), st.randoms())
def test_events_that_nest_in_nothing_close_too(tmp_path, events, random):
    random.shuffle(events)
    profile = profile_of(write(tmp_path / "trace.json", document(events), layout="compact"))
    table = profile.leaves
    on_path = np.zeros(len(profile.periods), np.int64)
    np.add.at(on_path, table.step, table.path_ns)
    assert on_path.tolist() == profile.periods.tolist()
    assert (table.longest_ns <= table.path_ns).all()


@examples(60)
@given(trace_events(), st.randoms())
def test_the_order_of_events_in_the_file_does_not_matter(tmp_path, events, random):
    first = profile_of(write(tmp_path / "a.json", document(events), layout="compact"))
    random.shuffle(events)
    second = profile_of(write(tmp_path / "b.json", document(events), layout="compact"))
    assert spelled(first, ("path_ns", "total_ns", "count")) == spelled(second, ("path_ns", "total_ns", "count"))


@examples(60)
@given(trace_events())
def test_steps_may_be_cut_one_by_one(tmp_path, events):
    path = write(tmp_path / "trace.json", document(events), layout="compact")
    assert summed(one_by_one(path)) == summed(profile_of(path))


def one_by_one(path):
    with patch.object(bounds, "EVENTS_AT_ONCE", 1):
        return profile_of(path)


def test_a_loader_is_one_instance_whatever_happens_in_it(tmp_path):
    events = [step(1, 0, 100), annotation("enumerate(DataLoader)#next", 10, 40)]
    events += [op("aten::stack", 12 + 3 * i, 2) for i in range(10)]
    events += [op("aten::mm", 60, 20), call("cudaLaunchKernel", 62, 5, 1), kernel("gemm", 70, 30, 1)]
    found = spelled(profile_of(write(tmp_path / "t.json", document(events))), ("path_ns", "total_ns", "count"))
    assert found[0, "loading", "", "", ""] == (40_000, 40_000, 1)
    assert (0, "op", "aten::stack", "aten::stack", "aten::stack") not in found


@needs_traces
@pytest.mark.parametrize("name", SOME)
def test_steps_of_real_traces_may_be_cut_one_by_one(name):
    (path,) = [p for p in FILES if p.as_posix().endswith(name)]
    assert summed(one_by_one(path)) == summed(profile_of(path))


@needs_traces
@pytest.mark.parametrize("name", SOME)
def test_where_a_file_is_cut_does_not_matter(name):
    (path,) = [p for p in FILES if p.as_posix().endswith(name)]
    first, second = (build_profile(read_trace(str(path), chunk)) for chunk in (CHUNK, 10_007))
    assert summed(first) == summed(second)
    assert sum(summed(first).values()) == len(first.leaves.step)
