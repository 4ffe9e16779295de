"""Files that are no memory snapshots: one line each, in bounded time and memory, and nothing of them runs."""

import gzip
import io
import os
import pickle
import resource
import struct
import subprocess
import sys
import time
from collections import OrderedDict
from pathlib import Path

import pytest
from build_memory_snapshot import alloc, block, frames, segment, snapshot, write
from hypothesis import given, strategies as st
from properties import examples

from tracediff.errors import TracediffError
from tracediff.ingest.files.source import TraceFile
from tracediff.memory.account import account_of
from tracediff.memory.plain_pickle import load_plain
from tracediff.memory.snapshot import read_snapshot
from tracediff.present.memory import memory_text

GOOD = snapshot([segment(0, 4096, block(0, 512, stack=frames()))], [*alloc(600, 9, frames()), *alloc(1600, 9)])
MB = 1 << 20


class Command:
    def __reduce__(self):
        return os.system, ("echo ran > ran",)


def refused(path):
    """The line that refuses the file at ``path``."""
    with pytest.raises(TracediffError) as caught:
        read_snapshot(TraceFile(str(path)))
    line = str(caught.value)
    assert line.startswith(str(path))
    assert "\n" not in line
    return line


def raw(body, protocol=4):
    return b"\x80" + bytes([protocol]) + body


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(tmp_path, protocol):
    found = read_snapshot(TraceFile(str(write(tmp_path / "a", GOOD, protocol))))
    assert found == read_snapshot(TraceFile(str(write(tmp_path / "b", GOOD))))


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("asked", [Command(), OrderedDict(), Path, print, 1j])
def test_classes_are_refused(tmp_path, monkeypatch, protocol, asked):
    monkeypatch.chdir(tmp_path)
    line = refused(write(tmp_path / "a", GOOD | {"extra": asked}, protocol))
    assert "asks for a Python class or function" in line
    assert not (tmp_path / "ran").exists()


def test_persistent_objects_are_refused(tmp_path):
    for body in (b"K\x01Q.", b"Pname\n."):
        (tmp_path / "a").write_bytes(raw(body))
        assert "asks for" in refused(tmp_path / "a")


HUGE = struct.pack("<Q", 1 << 40)
BOMBS = {
    "string": b"\x8d" + HUGE,
    "bytes": b"\x8e" + HUGE,
    "bytearray": b"\x96" + HUGE,
    "long": b"\x8b" + struct.pack("<i", 1 << 30),
    "memo": b"Nr" + struct.pack("<I", (1 << 32) - 1) + b".",
    "text memo": b"Np4294967295\n.",
    "nested tuples": b")" + b"\x85" * MB + b".",
    "nested pairs": b"K\x00K\x00\x86" + b"\x94h\x00\x86" * 1000 + b".",
    "containers": b"}" * MB + b".",
    "copies": b"]" + b"2" * MB + b".",
    "set": b"\x8f.",
    "no end": b"N" * MB,
    "a frame beyond the end": b"\x95" + HUGE + b"N.",
    "items of nothing": b"N(K\x00K\x00u.",
    "a memo entry that is missing": b"h\x07.",
    "nothing": b".",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(tmp_path, name):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (tmp_path / "a").write_bytes(raw(BOMBS[name]))
    start = time.process_time()
    refused(tmp_path / "a")
    assert time.process_time() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # KB


def test_deep_lists_are_only_a_foreign_pickle(tmp_path):
    """Lists in lists, as deep as the limit of containers lets them be."""
    depth = MB // 20
    body = b"]" * depth + b"X" + struct.pack("<I", MB) + b"x" * MB + b"a" * depth + b"."
    (tmp_path / "a").write_bytes(raw(body))
    assert "not a memory snapshot" in refused(tmp_path / "a")


def test_lists_that_occur_again_and_again(tmp_path):
    trace = alloc(0, 1, frames()) * 100
    blocks = [block(0, 8)] * 100
    entry = segment(0, 8) | {"blocks": blocks}
    for document in (
        {"segments": [], "device_traces": [trace] * 100},
        {"segments": [entry] * 100, "device_traces": []},
        {"segments": [dict(entry) for _ in range(100)], "device_traces": []},
    ):
        assert "more than once" in refused(write(tmp_path / "a", document))


def test_a_stack_of_many_frames_that_many_events_share(tmp_path):
    stack = [frames()[0]] * 20_000
    trace = [{"action": "alloc", "addr": k, "size": 1, "frames": stack} for k in range(20_000)]
    start = time.process_time()
    account_of(str(write(tmp_path / "a", snapshot([], trace))))
    assert time.process_time() - start < 5


def test_a_list_in_itself(tmp_path):
    stack = []
    stack.append(stack)
    trace = [{"action": "alloc", "addr": 0, "size": 5, "frames": stack}]
    (account,) = account_of(str(write(tmp_path / "a", snapshot([], trace)))).devices
    assert account.unknown == 5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"{}", "is not a pickle"),
        (b"\x80", "is not a pickle"),
        (pickle.dumps([1, 2]), "not a memory snapshot"),
        (pickle.dumps({"segments": [], "device_traces": []}), "contains no allocation"),
        (pickle.dumps({"segments": 5, "device_traces": []}), "Expected `array`, got `int`"),
        (pickle.dumps({"segments": [5], "device_traces": []}), "Expected `object`, got `int`"),
        (pickle.dumps({"segments": [{"address": 0}], "device_traces": []}), "required field `total_size`"),
        (pickle.dumps(snapshot([], [{"action": "alloc", "addr": 0}])), "required field `size`"),
        (pickle.dumps(snapshot([], [{"action": "alloc", "addr": 0, "size": -5}])), "`int` >= 0 - at `$[0].size`"),
        (pickle.dumps(snapshot([], [{"action": "alloc", "addr": 0, "size": 1.5}])), "Expected `int`, got `float`"),
        (pickle.dumps(snapshot([], [{"action": "alloc", "addr": 0, "size": True}])), "Expected `int`, got `bool`"),
        (pickle.dumps(snapshot([], [7])), "Expected `object`, got `int`"),
        (pickle.dumps(GOOD, 0), "is not a pickle"),
        (pickle.dumps(GOOD | {"more": 1 << 70}), "contains what a memory snapshot does not"),
        (pickle.dumps(GOOD | {"more": {1, 2}}), "contains what a memory snapshot does not"),
        (pickle.dumps(GOOD | {"more": frozenset((1, 2))}), "contains what a memory snapshot does not"),
        (pickle.dumps(GOOD | {"more": (1, (2, 3))}), "contains what a memory snapshot does not"),
        (pickle.dumps(GOOD | {"more": b"bytes"}), "contains what a memory snapshot does not"),
        (gzip.compress(pickle.dumps(GOOD))[:-9], "cut off"),
    ],
)
def test_foreign_files(tmp_path, content, words):
    (tmp_path / "a").write_bytes(content)
    assert words in refused(tmp_path / "a")


@pytest.mark.slow
def test_compressed_bombs(tmp_path):
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        file.write(b"\x80\x04")
        for _ in range(300):
            file.write(b"N" * MB)
    (tmp_path / "a").write_bytes(packed.getvalue())
    assert "unpacks to more than 100 times its size" in refused(tmp_path / "a")


def test_a_file_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("tracediff.memory.snapshot.MOST_BYTES", 1000)
    assert "is larger than" in refused(write(tmp_path / "a", GOOD | {"more": "x" * 3 * MB}))


def test_every_cut_is_one_line():
    whole = pickle.dumps(GOOD)
    for end in range(1, len(whole)):
        with pytest.raises(TracediffError):
            load_plain(whole[:end], "a")


@examples(300)
@given(st.integers(0, 10_000), st.integers(0, 255), st.sampled_from([2, 4]))
def test_a_changed_byte_gives_an_answer_or_one_line(tmp_path, position, value, protocol):
    content = bytearray(pickle.dumps(GOOD, protocol))
    content[position % len(content)] = value
    (tmp_path / "a").write_bytes(content)
    try:
        found = account_of(str(tmp_path / "a"))
    except TracediffError:
        return
    memory_text([found], 10)


def test_memory_stays_in_proportion(tmp_path):
    """The worst mixture that the limits let pass takes in the order of 30 times its size."""
    unit = b"}\x94K\x00K\x00s" + b"\x8c\x03abc"
    body = raw(b"](" + unit * (8 * MB // len(unit)) + b"e.")
    (tmp_path / "a").write_bytes(body)
    script = (
        "import resource, sys\n"
        "from tracediff.memory.account import account_of\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    account_of(sys.argv[1])\nexcept Exception as error:\n    print(error, file=sys.stderr)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "a"], capture_output=True, text=True, check=True)
    assert "not a memory snapshot" in done.stderr
    assert int(done.stdout) * 1024 < 40 * len(body)
