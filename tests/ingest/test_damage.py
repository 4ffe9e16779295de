"""Damaged files: what can be read is read, what cannot is counted or refused in one line, and no event is ever made
up.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from build_trace import LAYOUTS, call, document, kernel, op, process_name, rows, step, text
from hypothesis import given, strategies as st
from properties import examples

from tracediff.errors import NotATrace, TracediffError
from tracediff.ingest.files.documents import brackets, repaired
from tracediff.ingest.json import chunks, irregular
from tracediff.ingest.model.trace import Trace
from tracediff.ingest.read import read_trace

SMALL = [
    step(1, 0, 100.5),
    op('a }{ \\ "b"', 10, 20.125, **{"Input Dims": [[2, 3], []], "items": [{"a": 1}, {"b": [{}]}]}),
    process_name("py"),
    kernel("k", 30, 5.25, 1),
]
MANY = [
    e
    for i in range(12)
    for e in (
        op(f"aten::mm{i}", 100 * i, 20.125, items=[{"a": 1}, {"b": ["},{"]}]),
        call("launch", 100 * i + 2, 3, i),
        kernel(f"k{i}", 100 * i + 3, 5, i),
    )
]


def one_line(error: TracediffError) -> bool:
    return "\n" not in str(error) and all((error.subject, error.reason, error.remedy))


def attempt(read: Callable[..., Trace], content: bytes) -> Trace | TracediffError:
    try:
        return read(content)
    except TracediffError as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["kineto", "compact", "list"])
def test_a_trace_cut_off_anywhere_is_read_up_to_the_cut_or_refused(read, codes, layout: str) -> None:
    content = text(document(SMALL, distributedInfo={"rank": 1}), layout)
    whole = rows(read(content))
    last = len(content.rstrip())
    for cut in range(last):
        found = attempt(read, content[:cut])
        if isinstance(found, TracediffError):
            assert one_line(found)
            assert cut < spans(content, layout)[0][1]
            continue
        assert rows(found) == whole[: len(found)]
        assert codes(found) == {"truncated": 1}


@examples(60)
@given(cut=st.integers(1000, 4000), chunk=st.integers(20, 500), layout=st.sampled_from(sorted(LAYOUTS)))
def test_a_cut_is_found_whatever_the_chunk(read, codes, cut: int, chunk: int, layout: str) -> None:
    content = text(document(MANY), layout)[:cut]
    found = read(content, chunk)
    assert rows(found) == rows(read(text(document(MANY), layout)))[: len(found)]
    assert codes(found) == {"truncated": 1}


def spans(content: bytes, layout: str) -> list[tuple[int, int]]:
    """The position of each event in ``content``."""
    start = content.index(b"[", 0 if layout == "list" else content.index(b'"traceEvents"')) + 1
    out, event_start = [], -1
    for behind, depth in brackets(content, start):
        if depth < 0:
            return out
        if depth == 1 and event_start < 0:
            event_start = behind - 1
        if depth == 0:
            out.append((event_start, behind))
            event_start = -1
    raise AssertionError("the list of events does not end")


def is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


NASTY = [
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\",
    b"\x00",
    b"\xff",
    b"},{",
    b"a",
    b"nan",
    b"\n",
    b"0",
    b"{{{",
    b'"}',
    b"\xf0\x9f",
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_damage_costs_no_event_but_those_it_touches(read, layout: str) -> None:
    """A stretch of the file is replaced by garbage, at a hundred places: every untouched event is read, and nothing is
    reported as whole that is not.
    """
    content = text(document(MANY), layout)
    whole, places = rows(read(content)), spans(content, layout)
    assert len(places) == len(MANY)
    draw = random.Random(layout)
    for _ in range(100):
        start = draw.randrange(places[0][0] + 1, places[-1][1])
        stop = min(start + draw.choice((0, 0, 1, 5, 50, 400)), places[-1][1])
        garbage = b"".join(draw.choices(NASTY, k=draw.choice((1, 1, 2, 5, 20))))
        damaged = content[:start] + garbage + content[stop:]
        if b"]" in garbage and b"}" in garbage:
            continue  # that may spell an early end of the list
        found = read(damaged, draw.choice((300, 1000, 1 << 20)))
        untouched = [row for row, (a, z) in zip(whole, places, strict=True) if z <= start or a >= stop]
        read_back = rows(found)
        assert [row for row in read_back if row in untouched] == untouched, (start, stop, garbage)
        assert len(read_back) <= len(untouched) + sum(
            z > start and a < max(stop, start + 1) for a, z in places
        ) + garbage.count(b"{")
        if not is_json(damaged):
            harmless = (
                b"," in garbage or not garbage.isascii()
            )  # a comma too many, invalid UTF-8 in a key that is not read
            assert found.notes or harmless, (start, stop, garbage)


@pytest.mark.parametrize(
    ("written", "lost"),
    [
        ('"a": 1 garbage', 1),
        ('"a": "no end', 1),
        ('"a": [1, 2', 1),
        ('"a": {"b": 1', 1),
        ('"a": 01', 1),
        ('"say "hi" there": 1', 1),
        ('"a": 1,', 1),
    ],
)
@pytest.mark.parametrize("layout", ["kineto", "compact"])
def test_broken_events_are_left_out_and_counted(read, codes, written: str, lost: int, layout: str) -> None:
    content = text(
        document(
            [
                op("first", 0, 1),
                op("broken", 1, 1, mark="here"),
                op("after", 2, 1),
                op("broken", 3, 1, mark="here"),
                op("last", 4, 1),
            ]
        ),
        layout,
    )
    found = read(content.replace(b'"mark": "here"', written.encode()).replace(b'"mark":"here"', written.encode()))
    assert found.names == ["first", "after", "last"]
    assert codes(found) == {"damaged": 2 * lost}


@pytest.mark.parametrize(
    "bad", ["nan", "NaN", "-nan", "inf", "-inf", "Infinity", "-Infinity", "-nan(ind)", "1.#INF", "-1.#QNAN"]
)
def test_numbers_that_json_does_not_know_are_taken_as_absent_and_counted(read, codes, bad: str) -> None:
    content = text(
        document([op("a", 0, 1.5), kernel("k", 1, 2.125, 7, **{"est. achieved occupancy %": "BAD"}), op("nan", 2, 1)])
    )
    found = read(content.replace(b'"BAD"', bad.encode()))
    assert [row[:3] for row in rows(found)] == [(0, 1500, "a"), (1000, 2125, "k"), (2000, 1000, "nan")]
    assert found.arguments_of(1) == {"device": 0, "stream": 7, "correlation": 7}
    assert codes(found) == {"repaired": 1}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (rb"C:\Users\me", r"C:\Users\me"),
        (rb"\x41\d\u12", r"\x41\d\u12"),
        (b"tab\tand\nline\x01", "tab\tand\nline\x01"),
        (rb"half \ud83d pair", "half \ufffd pair"),
        (rb"other half \ude00", "other half \ufffd"),
        (rb"\ud83d\ude00 whole \ud83d\u0041", "\U0001f600 whole \ufffdA"),
        (b"not utf-8: \xff\xc3(", "not utf-8: \ufffd\ufffd("),
        (b"\\\n", "\\\n"),
    ],
)
@pytest.mark.parametrize("where", ["name", "argument"])
def test_text_that_is_no_valid_json_is_repaired_and_counted(
    read, codes, written: bytes, meant: str, where: str
) -> None:
    events = [
        op("before", 0, 1),
        op("HERE", 1, 1.125) if where == "name" else op("name", 1, 1.125, text="HERE"),
        op("behind", 2, 1),
    ]
    for layout in ("kineto", "compact"):
        found = read(text(document(events), layout).replace(b"HERE", written))
        assert len(found) == 3
        assert (found.names[found.name[1]] if where == "name" else found.arguments_of(1)["text"]) == meant
        assert int(found.dur[1]) == 1125
        assert codes(found) == {"repaired": 1}


def test_argument_names_that_are_no_utf8_are_repaired_and_counted(read, codes) -> None:
    found = read(text(document([op("a", 0, 1, KEY=1)])).replace(b"KEY", b"k\xffy"))
    assert found.arguments_of(0) == {"k\ufffdy": "1"}
    assert codes(found) == {"repaired": 1}


def test_repair_changes_no_number_and_no_valid_text() -> None:
    written = (
        rb'{"ts": 1712195495519689.047, "big": 123456789012345678901234567890, "s": "\u00e9\n\\ \ud83d\ude00 '
        rb'nan", "nan": nan}'
    )
    assert repaired(written) == written.replace(b": nan}", b": null}")


@pytest.mark.parametrize("written", [b"", b"{", b"[]", b'{"a" 1}', b'{"a": 1}}', b"nan", b'{"a": "\\"}'])
def test_what_is_no_object_even_so_is_not_repaired(written: bytes) -> None:
    assert repaired(written) is None


@pytest.mark.parametrize("between", ["null", "1", '"text"', "[]", "[[{}]]", "true", "-1.5e3"])
def test_entries_that_are_no_objects_are_left_out_and_counted(read, codes, between: str) -> None:
    event_text = text(document([op("a", 0, 1)]), "list").decode()[1:-1]
    for chunk in (1, 1 << 20):
        found = read(
            f'{{"traceEvents": [{between}, {event_text}, {between}, {event_text}, {between}]}}'.encode(), chunk
        )
        assert len(found) == 2
        assert codes(found) == {"damaged": 3}


def test_events_nested_too_deep_are_left_out_and_counted(read, codes) -> None:
    deep = "[" * 20_000 + "]" * 20_000
    content = text(document([op("a", 0, 1), op("deep", 1, 1, at="HERE"), op("b", 2, 1)])).replace(
        b'"HERE"', deep.encode()
    )
    for chunk in (1000, 1 << 20):
        found = read(content, chunk)
        assert found.names == ["a", "b"]
        assert codes(found) == {"damaged": 1}


def test_metadata_may_be_damaged_in_front_and_behind(read, codes) -> None:
    events = text(document(SMALL), "list").decode()
    head = read(f'{{"a": {{"b": 1]}}, "distributedInfo": {{"rank": 1}}, "traceEvents": {events}}}'.encode())
    tail = read(f'{{"traceEvents": {events}, "distributedInfo": {{"rank": 1]}}}}'.encode())
    path = read(
        rf'{{"path": "C:\Users", "distributedInfo": {{"rank": 1}}, "traceEvents": {events}, '.encode()
        + rb'"path": "C:\Users"}'
    )
    assert [len(head), len(tail), len(path)] == [len(SMALL)] * 3
    assert (codes(head), head.meta.distributed_info) == ({"head-damaged": 1}, None)
    assert (codes(tail), tail.meta.distributed_info) == ({"tail-damaged": 1}, None)
    assert path.meta.distributed_info.rank == 1


@pytest.mark.parametrize("rank", ['"one"', "[1]", "1.5", '"\\ud800"', "{}"])
def test_metadata_of_another_type_is_left_out_and_counted(read, codes, rank: str) -> None:
    found = read(
        f'{{"distributedInfo": {{"rank": {rank}}}, "baseTimeNanoseconds": 1, "traceEvents": '.encode()
        + text(document(SMALL), "list")
        + b"}"
    )
    assert (found.meta.distributed_info, found.meta.base_time_nanoseconds) == (None, 1)
    assert "odd-metadata" in codes(found) or "repaired" in codes(found)


def test_events_behind_a_false_end_of_the_list_are_counted(read, codes) -> None:
    events = text(document(MANY), "compact").decode()
    position = events.index('{"ph":"X","cat":"kernel","name":"k5"')
    found = read((events[:position] + "{}]}\x00" + events[position:]).encode())
    assert len(found) == 17
    assert codes(found)["damaged"] == 19


@pytest.mark.slow
def test_a_stray_bracket_between_events_is_no_end(read, codes) -> None:
    for layout in ("list", "compact"):
        content = text(document(MANY), layout)
        position = spans(content, layout)[17][0]
        damaged = content[:position] + b"] , " + content[position:]
        for chunk in (*range(20, 300, 2), 1 << 20):  # what follows the bracket may lie in the next chunk
            found = read(damaged, chunk)
            assert len(found) == len(MANY)
            assert codes(found) == {"damaged": 1}


def test_a_hole_in_the_file_costs_what_lay_in_it(read, codes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(irregular, "LOOK", 20_000)
    content = text(document(MANY))
    found = read(content[:2000] + b"\0" * 100_000 + content[3000:], 1000)
    assert len(MANY) - 8 < len(found) < len(MANY)
    assert codes(found)["damaged"] > 0


def test_a_file_with_more_damage_than_is_bearable_is_refused_in_one_line(read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(irregular, "LOOK", 20_000)
    monkeypatch.setattr(chunks, "MOST_DAMAGE", 50_000)
    content = text(document(MANY))
    with pytest.raises(TracediffError, match="cannot be read") as caught:
        read(content[:2000] + b"\0" * 200_000 + content[3000:], 1000)
    assert one_line(caught.value)


@pytest.mark.parametrize("broken", ['{"a": "say "hi", "b": [{"c": 1}]}', '{"a": [', '{"a": {"b": ', '{"a": 1'])
def test_searching_hopeless_text_ends(read, codes, broken: str) -> None:
    """Every event is broken so that its end is unknown: the search gives up after a bounded effort, and says how
    much was lost.
    """
    good = json.dumps(op("good", 0, 1))
    bad = [json.dumps(op("bad", i, 1, mark="here")).replace('{"mark": "here"}', broken) for i in range(400)]
    found = read(f"[{good}, {', '.join(bad)}]".encode())
    assert found.names == ["good"]
    assert codes(found)["damaged"] >= 399 or codes(found)["truncated"] == 1


def test_giving_up_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(irregular, "LOOK", 4000)
    hopeless = b'{"ph": "X", "ts": 1, "args": {"a": [' * 3000
    found = irregular.Salvage(hopeless, chunks.END_OF_ROOT, final=True, before=0, in_vain=0)
    assert found.given_up > 0
    assert found.lost >= 2900
    assert found.used > len(hopeless) - 4000


def outcome(read: Callable[..., Trace], content: bytes, chunk: int) -> object:
    try:
        found = read(content, chunk)
    except TracediffError as error:
        return error.reason
    return repr((rows(found), found.notes, found.meta))


@pytest.mark.slow
@examples(150)
@given(seed=st.integers(0, 1 << 32))
def test_what_is_kept_and_noted_does_not_depend_on_the_chunks(read, seed: int) -> None:
    """With a short look ahead, damage often reaches beyond it."""
    draw = random.Random(seed)
    content = bytearray(text(document(MANY), draw.choice(sorted(LAYOUTS))))
    for _ in range(draw.choice((1, 2, 8, 30))):
        at = draw.randrange(len(content) + 1)
        content[at : at + draw.choice((0, 0, 1, 20, 300))] = draw.choice(
            [*NASTY, b"5,", b'"x",', b"[1],", b"]}", b'],"']
        )
    with pytest.MonkeyPatch.context() as patch:
        look = draw.choice((300, irregular.LOOK))
        patch.setattr(irregular, "LOOK", look)
        patch.setattr(irregular, "SHORT", look // 4)
        expected = outcome(read, bytes(content), 1 << 20)
        assert {outcome(read, bytes(content), draw.randrange(1, limit)) for limit in (30, 500, 5000)} == {expected}


def test_a_file_without_a_single_event_that_can_be_read_says_why(read) -> None:
    with pytest.raises(NotATrace, match="not valid JSON"):
        read(b'{"traceEvents": [{"ph": oops}, {"ph": oops}]}')
    with pytest.raises(NotATrace, match="the file is cut off"):
        read(b'{"traceEvents": [{"ph": "X", "ts": 1')
    with pytest.raises(NotATrace, match="contains no events"):
        read(b'{"traceEvents": []}')


def test_damage_of_tiny_values_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_DAMAGE", 1 << 16)
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"traceEvents":[' + b"{}" * 10_000 + b"]}")
    with pytest.raises(TracediffError, match="cannot be read"):
        read_trace(str(path))
