"""Hypothesis strategies: small traces in which anything that Kineto may write can happen, on a grid that makes ties
likely.
"""

from __future__ import annotations

from build_trace import BACKWARD, MAIN, annotation, call, kernel, memcpy, memset, op, python, step
from hypothesis import strategies as st

OPS = ("aten::mm", "aten::add", "aten::copy_", "aten::relu")
CALLS = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaMemcpy", "cudaFree")
KERNELS = ("gemm_a", "gemm_b", "ncclAllReduce", "triton_poi_fused_add_0", "triton_poi_fused_add_1")


@st.composite
def nested_ops(draw, start: int, end: int, tid: int, depth: int = 0):
    """Operators and calls that nest inside [start, end)."""
    out, time = [], start
    while time < end and draw(st.booleans()):
        begin = draw(st.integers(time, end))
        stop = draw(st.integers(begin, end))
        if draw(st.booleans()) and depth < 3:
            out.append(
                op(draw(st.sampled_from(OPS)), begin, stop - begin, tid=tid, **{"External id": begin * 10 + depth})
            )
            out += draw(nested_ops(begin, stop, tid, depth + 1))
        else:
            out.append(call(draw(st.sampled_from(CALLS)), begin, stop - begin, tid=tid))
        time = max(stop, time + 1)
    return out


@st.composite
def trace_events(draw, gpu: bool = True, most_steps: int = 4):
    """Events of one file: steps, nested host work on two threads, annotations, GPU events launched from some of the
    calls.
    """
    events, time = [], 0
    first = draw(st.integers(1, 5))
    for number in range(first, first + draw(st.integers(1, most_steps))):
        length = draw(st.integers(5, 40))
        events.append(step(number, time, length))
        events.append(op("aten::mm", time + 1, 2))  # a step is never empty
        events += draw(nested_ops(time + 3, time + length, MAIN))
        if draw(st.booleans()):
            events += draw(nested_ops(time, time + length, BACKWARD))
        if draw(st.booleans()):
            events.append(
                annotation("enumerate(DataLoader)#next", time + draw(st.integers(0, 4)), draw(st.integers(0, 6)))
            )
        time += length + draw(st.integers(0, 5))
    if gpu:
        events += draw(gpu_work(events, time))
    return events


@st.composite
def long_trace_events(draw):
    """The same, of some in times 20 times as long, beside a kernel of another stream that may take as long as all."""
    factor = draw(st.sampled_from((1, 20, 20)))
    events = [{k: v * factor if k in ("ts", "dur") else v for k, v in e.items()} for e in draw(trace_events())]
    end = max(e["ts"] + e["dur"] for e in events)
    return [*events, kernel("long", draw(st.integers(0, end // 2)), draw(st.integers(0, end)), 998, stream=20)]


@st.composite
def scattered_events(draw, gpu: bool = True):
    """Events of one file that need not nest: operators before, around and across steps, steps that overlap or have no
    length, launches in no step.
    """
    time, length = st.integers(-5, 60), st.sampled_from((0, 1, 3, 10, 40))
    tid, name = st.sampled_from((MAIN, MAIN, BACKWARD)), st.sampled_from(OPS)
    kinds = [
        st.builds(op, name, time, length, tid, **{"Input Dims": st.sampled_from(([], [[2, 3]]))}),
        st.builds(op, name, time, length, tid),
        st.builds(call, st.sampled_from(CALLS), time, length, st.integers(1, 3), tid),
        st.builds(annotation, st.sampled_from(("mine", "Optimizer.step#SGD.step")), time, length, tid),
        st.builds(python, st.just("nn.Module: Linear_0"), time, length, st.integers(1, 9)),
    ]
    if gpu:
        kinds += [time.flatmap(lambda start: gpu_event(start, 1)), time.flatmap(lambda start: gpu_event(start, 7))]
    events = draw(st.lists(st.one_of(kinds), min_size=1, max_size=12))
    return events + draw(st.lists(st.builds(step, st.integers(0, 3), time, length), max_size=3))


@st.composite
def gpu_work(draw, events, end: int):
    """GPU events: some launched by calls of ``events``, some whose launch is not there."""
    out, correlation = [], 0
    for launch in [e for e in events if e["cat"] == "cuda_runtime"]:
        for _ in range(draw(st.integers(0, 2))):
            correlation += 1 if not launch["args"].get("correlation") else 0
            launch["args"].setdefault("correlation", correlation)
            begin = launch["ts"] + launch["dur"] + draw(st.integers(-1, 20))
            out.append(draw(gpu_event(begin, launch["args"]["correlation"])))
    out += [draw(gpu_event(draw(st.integers(0, end)), 999)) for _ in range(draw(st.integers(0, 2)))]
    return out


@st.composite
def gpu_event(draw, begin: int, correlation: int):
    """One kernel, copy or memset on one of two streams of one of two devices."""
    length, stream, device = draw(st.integers(0, 12)), draw(st.sampled_from((0, 7))), draw(st.sampled_from((0, 0, 1)))
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return memcpy("Memcpy HtoD (Pageable -> Device)", begin, length, correlation, stream, device)
    if kind == 1:
        return memset(begin, length, correlation, stream, device)
    grid = draw(st.sampled_from(([1, 1, 1], [2, 1, 1])))
    return kernel(
        draw(st.sampled_from(KERNELS)), begin, length, correlation, stream, device, grid=grid, block=[32, 1, 1]
    )
