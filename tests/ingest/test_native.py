"""The native reader gives what the Python reader gives, and leaves to it whatever is not plain."""

import gzip
import json
import os
import sys
from decimal import Decimal

import numpy as np
import pytest
import traces
from build_trace import document, noted, rows
from fuzz import seeds
from fuzz.targets import read_or_refused, same_answer
from hypothesis import given, strategies as st
from properties import examples

from tracediff.aggregate.snapshot import write_snapshot
from tracediff.engine import ARGUMENTS, load_sets
from tracediff.ingest.json.decode import EventDecoder, Plain
from tracediff.ingest.json.native import SWITCH, PlainReader
from tracediff.ingest.model.health import Notes
from tracediff.ingest.read import read_trace

pytestmark = pytest.mark.native


def part_read_natively(text):
    """The fraction of the events of a JSON list that the native reader reads."""
    found = EventDecoder(notes=Notes(), only=None).events(text)
    plain = sum(len(piece.ts) for piece in found if isinstance(piece, Plain))
    return plain / (plain + sum(len(piece.events) for piece in found if not isinstance(piece, Plain)))


def columns(trace):
    """Every column of a trace by name, without codes; of arguments by (category, name)."""
    named = {"name": trace.names, "category": trace.categories, "phase": trace.phases}
    named |= {"pid": trace.ids, "tid": trace.ids}
    found = {key: np.array([*texts, None], object)[getattr(trace, key)] for key, texts in named.items()}
    found |= {"ts": trace.ts, "dur": trace.dur}
    for code, arguments in trace.arguments.items():
        category = trace.categories[code]
        texts = {k: np.array([*trace.texts, None], object)[column] for k, column in arguments.of_type(np.int32).items()}
        both = {"rows": arguments.rows, **arguments.columns, **texts}
        found |= {(category, key): column for key, column in both.items()}
    return found


@traces.needs_traces
@pytest.mark.parametrize("name", traces.NAMES)
@pytest.mark.parametrize("only", [None, ARGUMENTS], ids=["all", "wanted"])
def test_real_traces_read_the_same(name, only):
    python, native = (read_or_refused(traces.FOLDER / name, None, only, switch) for switch in ("0", "1"))
    assert python.notes == native.notes
    assert python.meta == native.meta
    expected, found = columns(python), columns(native)
    assert expected.keys() == found.keys()
    for key, column in expected.items():
        np.testing.assert_array_equal(found[key], column, str(key))


@traces.needs_traces
@pytest.mark.parametrize("name", ["timesformer_h100", "oldformat_listroot", "bertsmall_mi300", "tinylm_compile"])
@pytest.mark.parametrize(
    "layout", [{}, {"separators": (",", ":")}, {"indent": 2}], ids=["spaced", "compact", "indented"]
)
def test_real_events_are_plain_in_every_layout(name, layout):
    trace = json.loads(gzip.decompress(traces.trace(name).read_bytes()))
    events = (trace["traceEvents"] if isinstance(trace, dict) else trace)[::4]  # of all kinds
    assert part_read_natively(json.dumps(events, **layout).encode()) >= 0.95


PLAIN = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {"Ev Idx": 3}}
ODD = [
    *(f'"ts": {text}' for text in ("-1", "1.2345", "1e3", '"7"', "null", "01", "9007199254740993", "1.", "1.5e3")),
    *(f'"dur": {text}' for text in ("-1", "0.0005", "5e15", '"7"', "null", "true")),
    *(f'"pid": {text}' for text in ("1.5", "null", "true", "[1]", "99999999999999999999", "-0")),
    *(f'"name": {text}' for text in ("null", "5", r'"\ud800"', '"\\u00e9"', '"é\\n"', '"\x01"')),
    *(f'"args": {text}' for text in ("null", "[]", '{"Ev Idx": "x"}', '{"Ev Idx": 1.5}', '{"\\u0061": 1}', '{"é": 1}')),
    *(f'"args": {text}' for text in ('{"Ev Idx": 1, "Ev Idx": 2}', '{"warps per SM": null}', '{"a": 1e999}', "{}")),
    *('"cat": null', '"cat": ""', '"ph": null', '"id": 1.5', '"id": "0x7"', '"name": "a", "name": "b"', '"ph": "C"'),
    *('"x": nul', '"x": "\\q"', '"x": 1.2.3', '"x": +1', '"x": [1,]', '"x": {"a" 1}', '"x"', "\x00"),
]


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_event_is_read_by_python(odd, tmp_path):
    events = [json.dumps(PLAIN, ensure_ascii=False)] * 3
    events[1] = f'{{"ph": "X", "tid": 2, {odd}}}'
    path = tmp_path / "trace.json"
    path.write_bytes(f'{{"traceEvents": [{", ".join(events)}]}}'.encode("utf-8", "surrogatepass"))
    same_answer(*(read_or_refused(path, None, None, switch) for switch in ("0", "1")))


@examples(500)
@given(st.integers(0, 2**52 - 1), st.one_of(st.just(""), st.from_regex(r"\A\.[0-9]{1,3}\Z")))
def test_times_are_the_digits_that_are_written(whole, fraction):
    text = f'[{{"ts": {whole}{fraction}, "ph": "X", "dur": {whole % 2**42}{fraction}}}]'.encode()
    found, position, _ = PlainReader(lambda _: True).scan(text, 1, True)
    assert position == len(text)
    assert found.ts[0] == Decimal(f"{whole}{fraction}") * 1000
    assert found.dur[0] == Decimal(f"{whole % 2**42}{fraction}") * 1000


@examples(100)
@given(st.randoms(use_true_random=False), st.integers(1, 400))
def test_what_is_read_does_not_depend_on_chunks(tmp_path, random, chunk):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(seeds.trace(random)))
    whole, pieces = read_trace(str(path)), read_trace(str(path), chunk)
    assert rows(whole) == rows(pieces)
    assert noted(whole) == noted(pieces)


def test_it_is_turned_off_by_a_variable(monkeypatch):
    assert part_read_natively(json.dumps([PLAIN]).encode()) == 1
    monkeypatch.setitem(os.environ, SWITCH, "0")
    assert part_read_natively(json.dumps([PLAIN]).encode()) == 0


def test_memory_is_given_back():
    texts = [json.dumps(document([PLAIN | {"name": f"n{k}"} for k in range(50)])["traceEvents"]) for _ in range(2)]
    texts += ['[{"ph": "X", "args": {"a": [1, {"b": 2}], "c": nul}}]', '[{"name": "\\ud800"}]', "[5]", "[{"]

    def read_all():
        for text in texts:
            reader = PlainReader(lambda _: True)
            reader.scan(text.encode(), 1, True)
            reader.scan(text.encode(), 0, False)

    read_all()
    before = sys.getallocatedblocks()
    for _ in range(200):
        read_all()
    assert sys.getallocatedblocks() - before < 100


def test_odd_calls_are_errors():
    scanner = PlainReader(lambda _: True)._scanner
    for arguments in [("text", 0, True), (b"[]", 5, True), (b"[]", -1, True), ()]:
        with pytest.raises((TypeError, ValueError)):
            scanner.scan(*arguments)
    with pytest.raises(TypeError):
        scanner.__init__(len, len, 0)
    failing = PlainReader(lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.scan(b'[{"args": {"a": 1}}]', 1, True)
    assert np.array_equal(failing.scan(b'[{"ts": 1}]', 1, True)[0].ts, [1000])


@traces.needs_traces
@pytest.mark.parametrize("name", ["timesformer_h100", "tinylm_compile", "oldformat_listroot"])
def test_a_snapshot_is_the_same_to_the_byte(name, tmp_path, monkeypatch):
    written = []
    for switch in ("0", "1"):
        monkeypatch.setitem(os.environ, SWITCH, switch)
        write_snapshot(load_sets([str(traces.trace(name))])[0], path := tmp_path / f"{switch}.tdprof.gz")
        written.append(path.read_bytes())
    assert written[0] == written[1]
