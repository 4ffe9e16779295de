"""No argument of a real trace is lost, and arguments of any other kind are kept or counted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from build_trace import document, event, flow, kernel, op, text
from traces import FILES, NAMES, needs_traces

from tracediff import bounds
from tracediff.arrays import MISSING
from tracediff.ingest.json.arguments import FLOW_ID
from tracediff.ingest.model.trace import Arguments, Trace
from tracediff.ingest.read import read_trace

TODAYS = {"external id": "External id"}
EVERY_ROW = 8_000
"""Events up to which `arguments_of` is asked for each row; of larger files for every 97th."""


def raw_events(path: Path) -> list[dict[str, Any]]:
    content = path.read_bytes()
    root = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    return root if isinstance(root, list) else root["traceEvents"]


def same(found: Any, written: Any) -> bool:
    """Whether a value came back: numbers that ROCm wrote as text come back as numbers, lists and objects as their
    JSON.
    """
    if isinstance(written, str):
        return found == written or str(found) == written
    if isinstance(found, str):
        return bool(json.loads(found) == written)
    return bool(found == written)


def column_values(trace: Trace, arguments: Arguments, name: str) -> list[Any]:
    """The values of one argument in the order of ``arguments.rows``, None where absent."""
    values = arguments.columns[name].tolist()
    if name in arguments.of_type(np.int64):
        return [None if v == MISSING else v for v in values]
    if name in arguments.of_type(np.float64):
        return [None if np.isnan(v) else v for v in values]
    return [None if c < 0 else trace.texts[c] for c in values]


@needs_traces
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_every_argument_of_a_real_trace_comes_back(path: Path) -> None:
    events = raw_events(path)
    trace = read_trace(str(path))
    assert len(trace) == len(events)
    compared = 0
    right: set[tuple[Any, str]] = set()
    for columns in trace.arguments.values():
        arguments = [events[row].get("args") or {} for row in columns.rows.tolist()]
        for name in columns.columns.keys() - {FLOW_ID}:
            old = next((o for o, t in TODAYS.items() if t == name), name)
            for found, args in zip(column_values(trace, columns, name), arguments, strict=True):
                written = args.get(name, args.get(old))
                compared += written is not None
                if found == written or (key := (found, str(written))) in right:
                    continue
                assert same(found, written), (name, found, written)
                right.add(key)
    assert compared == sum(v is not None for e in events for v in (e.get("args") or {}).values())
    for row in range(0, len(events), 1 if len(events) < EVERY_ROW else 97):
        written = {TODAYS.get(k, k): v for k, v in (events[row].get("args") or {}).items() if v is not None}
        found = trace.arguments_of(row)
        assert found.pop(FLOW_ID, None) == events[row].get("id")
        assert found.keys() == written.keys()
        assert all(same(found[k], v) for k, v in written.items()), (row, found, written)


def test_lists_come_back_as_json_on_one_line_in_every_layout(read) -> None:
    events = [op("a", 0, 1, **{"Concrete Inputs": [[2, 3], [], "x,  y"], "more": {"b": [1.50, None, True]}})]
    for layout in ("kineto", "compact", "indent", "crlf"):
        assert read(text(document(events), layout)).arguments_of(0) == {
            "Concrete Inputs": '[[2, 3], [], "x,  y"]',
            "more": '{"b": [1.5, null, true]}',
        }


def test_equal_texts_have_one_code_however_they_are_written(read) -> None:
    trace = read(
        b'{"traceEvents": [%s]}'
        % b",".join(
            b'{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1,"args":{"s":%s}}' % s
            for s in (b"[1,2]", b"[1 ,  2]", b'"[1, 2]"')
        )
    )
    assert len(set(trace.arguments[0].columns["s"].tolist())) == 1


def test_arrows_keep_their_ids_whether_or_not_they_have_arguments(read) -> None:
    events = [
        flow("s", 7, 1),
        {**flow("f", 8, 2), "args": {"id": "text"}},
        {**flow("s", 2**63, 3)},
        {**flow("s", 1, 4), "id": "0x1"},
    ]
    for chunk in (1, 1 << 20):
        trace = read(text(document(events)), chunk)
        assert [trace.arguments_of(i) for i in range(4)] == [{FLOW_ID: 7}, {FLOW_ID: 8, "id": "text"}, {}, {}]


def test_integers_beyond_64_bits_are_left_out_and_counted(read, codes) -> None:
    trace = read(
        text(document([op("a", 0, 1, **{"External id": v}) for v in (1, 2**63 - 1, 2**63, -(2**63) - 1, 2**200, -5)]))
    )
    assert trace.integer_column("External id", 0).tolist() == [1, 2**63 - 1, MISSING, MISSING, MISSING, -5]
    assert codes(trace) == {"odd-arguments": 3}


def test_values_of_an_unexpected_type_are_left_out_and_counted(read, codes) -> None:
    trace = read(
        text(document([kernel("k", i, 1, i + 1, **{"shared memory": v}) for i, v in enumerate(("7", [7], None))]))
    )
    assert [trace.arguments_of(i).get("shared memory") for i in range(3)] == [7, None, None]
    assert [trace.arguments_of(i)["correlation"] for i in range(3)] == [1, 2, 3]
    assert codes(trace) == {"odd-arguments": 1}


@pytest.mark.parametrize("args", [[1, 2], "text", 5, True])
def test_arguments_that_are_no_object_are_left_out_and_counted(read, codes, args: Any) -> None:
    trace = read(text(document([{**op("a", 0, 1), "args": args}, op("b", 1, 1, kept=1)]), "compact"))
    assert [trace.arguments_of(i) for i in range(2)] == [{}, {"kept": "1"}]
    assert codes(trace) == {"odd-arguments": 1}


def test_null_arguments_are_no_arguments(read) -> None:
    trace = read(text(document([{**op("a", 0, 1), "args": None}, op("b", 1, 1)]), "compact"))
    assert [trace.arguments_of(i) for i in range(2)] == [{}, {}]
    assert trace.notes == []


def test_too_many_argument_names_are_bounded_and_counted(read, codes) -> None:
    trace = read(text(document([op("a", i, 1, **{f"name {i}": i}) for i in range(bounds.ARGUMENTS + 50)])), 2000)
    assert len(trace.arguments[0].columns) == bounds.ARGUMENTS
    assert codes(trace) == {"odd-arguments": 50}


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "line\nend", "\x01"])
def test_argument_names_that_no_column_can_have_are_counted(read, codes, name: str) -> None:
    trace = read(text(document([op("a", 0, 1, **{name: 1, "kept": 2})])))
    assert trace.arguments_of(0) == {"kept": "2"}
    assert codes(trace) == {"odd-arguments": 1}


def test_both_spellings_of_the_external_id_are_one_column(read) -> None:
    trace = read(
        text(
            document(
                [
                    op("a", 0, 1, **{"external id": 1}),
                    op("b", 1, 1, **{"External id": 2}),
                    op("c", 2, 1, **{"External id": 3, "external id": 4}),
                ]
            )
        )
    )
    assert trace.integer_column("External id", 0).tolist() == [1, 2, 3]


def test_of_equal_keys_the_last_counts(read) -> None:
    trace = read(
        b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","name":"b","ts":1,"ts":2,"dur":1,"args":{"n":1,"n":2}}]}'
    )
    assert (trace.names[trace.name[0]], int(trace.ts[0]), trace.arguments_of(0)) == ("b", 2000, {"n": "2"})


def test_categories_beyond_the_bound_are_called_other_and_counted(read, codes) -> None:
    trace = read(text(document([event(f"category {i}", "a", i, 1) for i in range(400)]), "compact"))
    assert len(trace) == 400
    assert len(trace.categories) <= 257
    assert codes(trace)["many-categories"] > 100
