"""Inputs in other formats and of other devices."""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from build_trace import call, document, flow, kernel, memcpy, op, process_name, step
from nsys_file import TABLES, NsysFile
from odd_values import text
from sqlite_bombs import BOMBS, FAN, LEAF, ROWS, Pages, cell, interior, long_text, page, record

from fuzz import mutate, seeds

CELLS = (
    None,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    1.5,
    float("inf"),
    "",
    "x",
    "12",
    "\0",
    b"\xff\xfe",
    "aten::a, seq = 1, op_id = 2",
    "a" * 5000,
)
BETWEEN = b"\n---\n"
DEVICE, CANN, COLLECTIVES = 7001, 7002, 7003


def database(random: Random) -> bytes:
    """An export of Nsight Systems, with odd cells, without some columns or tables, with pages that refer to any others,
    or damaged, or whole.
    """
    if random.random() < 0.05:
        return mutate.damage(random, _bomb(random.choice(list(BOMBS))))
    file = NsysFile(Path(":memory:"))
    for process in range(random.choice((1, 1, 2))):
        file.add_process(100 + process, [e for e in seeds.trace(random)["traceEvents"] if e["ph"] == "X"])
    way = random.random()
    if way < 0.7:
        for _ in range(random.choice((1, 1, 2, 4))):
            _spoil(random, file.connection)
    content = file.connection.serialize()
    if way > 0.8:
        return _rewired(random, content)
    return mutate.damage(random, content) if way > 0.6 else content


@cache
def _bomb(name: str) -> bytes:
    return BOMBS[name]()


def _rewired(random: Random, content: bytes) -> bytes:
    """Interior pages in the place of others, above any pages, or text that goes on in any."""
    pages = Pages(content)
    for _ in range(random.choice((1, 1, 2, 4))):
        way, place = random.random(), random.randrange(1, len(pages.pages))
        any_page = random.randint(1, len(pages.pages))
        if way < 0.5:
            pages.endless(random.choice(sorted(TABLES)), random.choice((None, pages.pages[any_page - 1])))
        elif way < 0.8:
            pages.pages[place] = interior(any_page, random.randint(1, len(pages.pages)), random.randint(1, FAN))
        else:
            row = long_text(lambda text: record(1000, 2000, 59, text, 100 << 24 | 1, None), "x" * 9000)
            pages.pages[place] = page(LEAF, [cell(n, row, any_page) for n in range(ROWS)])
    return pages.bytes()


def _spoil(random: Random, connection: sqlite3.Connection) -> None:
    table = random.choice(sorted(TABLES))
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    way = random.random()
    if way < 0.1:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    elif columns and way < 0.2 and len(columns) > 2:
        connection.execute(f"ALTER TABLE {table} DROP COLUMN {columns[-1]}")
    elif columns:
        where = "" if random.random() < 0.2 else f" WHERE rowid % {random.randint(1, 9)} = 0"
        column = random.choice(columns)
        if (table, column) != ("StringIds", "id"):  # its type is checked by SQLite
            connection.execute(f"UPDATE {table} SET {column} = ?{where}", (random.choice(CELLS),))


def device(random: Random) -> bytes:
    """A trace of Ascend, MTIA or a TPU, spoiled or damaged or whole."""
    made = random.choice((_ascend, _ascend, _mtia, _tpu))(random)
    way = random.random()
    content = text(mutate.spoil(random, made) if way < 0.8 else made)
    return mutate.damage(random, content) if way > 0.7 else content


def _ascend(random: Random) -> dict[str, Any]:
    events = [process_name("Ascend Hardware", DEVICE), process_name("CANN", CANN), process_name("HCCL", COLLECTIVES)]
    events += [step(1, 0, 900)]
    for n in range(random.randint(1, 6)):
        at, connection = 100 * n, 50 + n
        events.append(op("aten::mm", at + 5, 40))
        events.append({**call("Enqueue", at + 10, 3), "cat": "enqueue", "args": {"correlation_id": n}})
        events.append({**call("Dequeue@mm", at + 20, 9, tid=9), "cat": "dequeue", "args": {"correlation_id": n}})
        events.append(_bare("Node@launch", at + 22, 4, CANN, 9, connection_id=connection))
        kind = random.choice(("AI_CORE", "EVENT_WAIT_SQE", "PCIE_DMA_SQE", "SDMA"))
        place = {"Task Type": kind, "Physic Stream Id": random.randint(2, 4), "connection_id": connection}
        events.append(_bare(random.choice(("MatMul", "EVENT_WAIT", "MEMCPY_ASYNC")), at + 30, 20, DEVICE, 2, **place))
        if random.random() < 0.3:
            events.append(_bare("hcom_allReduce__1_0_1", at + 30, 25, COLLECTIVES, 0, connection_id=connection))
        arrow, host, task = f"HostToDevice{n}", {"pid": CANN, "tid": 9}, {"pid": DEVICE, "tid": 2}
        for cat, name, begin, at_host in (("HostToDevice", arrow, 23, host), ("async_npu", "torch_to_npu", 5, {})):
            if random.random() < 0.7:
                events.append({**flow("s", n, at + begin, cat=cat), "name": name, **at_host})
                events.append({**flow("f", n, at + 30, cat=cat), "name": name, **task})
    if random.random() < 0.3:  # level 0
        events = [e for e in events if e["name"] != "Node@launch"]
    return document(events)


def _tpu(random: Random) -> dict[str, Any]:
    host = 701
    events = [process_name("/device:TPU:0", DEVICE), process_name("/host:CPU", host)]
    events += [_thread(DEVICE, 1, "XLA Modules"), _thread(DEVICE, 2, "XLA Ops"), _thread(DEVICE, 3, "Async XLA Ops")]
    for n in range(random.randint(1, 5)):
        at = 100 * n
        events.append(_bare("$model.py:12 step", at, 90, host, 5, **({"step_num": str(n)} if n else {})))
        events.append(_bare("DoEnqueueProgram", at + 2, 5, host, 5, run_id=str(n), device_ordinal="0"))
        events.append(_bare(f"jit_step({n}12345678901)", at + 20, 60, DEVICE, 1, run_id=str(n)))
        for k in range(random.randint(0, 3)):
            args = {
                "hlo_category": "loop fusion",
                "tf_op": random.choice(("jit(step)/aten::mul.Tensor/mul:", "", "a/b")),
            }
            name = random.choice(("fusion.1", "all-reduce.2", "while"))
            events.append(_bare(name, at + 20 + 10 * k, random.choice((10, 25)), DEVICE, 2, **args))
    return document(events)


def _thread(pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": "thread_name", "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": {"name": name}}


def _bare(name: str, ts: Any, dur: Any, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    """A complete event without a category, its time as text as torch_npu writes it."""
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{ts}.125", "dur": dur, "args": args}


def _mtia(random: Random) -> dict[str, Any]:
    events = [step(1, 0, 900)]
    for n in range(random.randint(1, 6)):
        at = 100 * n
        events.append({**call("runFunction - x", at + 5, 9, n, stream_id=str(n)), "cat": "mtia_runtime"})
        name = random.choice(("dma_request", "event_wait", "merge"))
        args = {"direction": "HOST_TO_DEVICE", "size": 64} if name == "dma_request" else {}
        events.append({**kernel(name, at + 20, 30, n, device=17, **args), "cat": "mtia_ccp_events"})
    return document(events)


def capture(random: Random) -> bytes:
    """A replay of a graph, and `BETWEEN` the two its capture, spoiled or not."""
    names = [random.choice(("gemm", "norm", "copy")) for _ in range(random.randint(0, 8))]
    captured = [call("hipStreamBeginCapture", 1, 1)]
    replay = [step(1, 0, 900), call("hipGraphLaunch", 10, 20, 1)]
    for i, name in enumerate(names):
        launch = "hipMemcpyAsync" if name == "copy" else "hipLaunchKernel"
        args = {"kernel": name, "grid": [i, 1, 1], "block": [64, 1, 1]} if random.random() < 0.8 else {}
        captured += [op(f"aten::{name}", 10 * i + 5, 8), call(launch, 10 * i + 6, 2, 100 + i, **args)]
        made = (
            memcpy("Memcpy DtoD (Device -> Device)", 50 + 5 * i, 4, 1)
            if name == "copy"
            else kernel(name, 50 + 5 * i, 4, 1)
        )
        replay += [made] * random.choice((1, 1, 1, 1, 0, 2))
    spoilt = mutate.spoil(random, document(captured)) if random.random() < 0.6 else document(captured)
    return text(document(replay)) + BETWEEN + text(spoilt)
