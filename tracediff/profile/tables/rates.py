"""Rates: the FLOPs and bytes of operators, their throughput and the share of the device's peak."""

import re
from collections.abc import Mapping

import numpy as np

from tracediff.arrays import Bools, Int64, changes, combined, int64_of, most, numbered_texts, tuples, values_at, zeros
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.trace import Codes, Trace
from tracediff.profile.events.context import Context
from tracediff.profile.kernels.families import uses_tensor_cores
from tracediff.profile.model.profile import TableRows
from tracediff.profile.perf_model.device_peaks import device_of
from tracediff.profile.perf_model.operator_costs import (
    OperatorWork,
    base_of,
    flop_work,
    has_flop,
    has_traffic,
    recorded_outputs,
    traffic_work,
)
from tracediff.profile.perf_model.recorded_sizes import read_inputs
from tracediff.profile.placement.nesting import Lane
from tracediff.profile.tables.schema import Key, Rate, TableSchema, read_columns, read_rates, summed


def part_of_peak(key: tuple[str, ...], value: Mapping[str, float], gpus: tuple[str, ...]) -> float | None:
    """The share of the roofline that a row attains: 1 for the peak that bounds its work. None where ``gpus`` are not
    one device that is known, or the trace or the datasheet lacks that peak; and above 1: then caches served the data
    or the algorithm needed fewer operations.

    Args:
        value: of each column, of a row or of a sum of rows of one dtype, over any common denominator.
    """
    device = device_of(gpus)
    if device is None:
        return None
    tflop_s = value["flop"] / value["flop_time"] / 1e3 if value["flop_time"] else None
    gb_s = value["bytes"] / value["bytes_time"] if value["bytes_time"] else None
    known_time = max(value["matrix"], value["vector"])
    units = None if 2 * known_time < value["flop_time"] or not known_time else value["matrix"] >= value["vector"]
    compute, memory = _part(tflop_s, device.peak(key[2], units)), _part(gb_s, device.memory)
    if compute is None and tflop_s is not None:
        return None
    return max((part for part in (compute, memory) if part is not None), default=None)


def _part(rate: float | None, peak: float | None) -> float | None:
    return rate / peak if rate is not None and peak and rate <= peak else None


RATES = TableSchema(
    "rates",
    "FLOP and byte rates",
    "FLOPs are computed from the input shapes of matrix products, convolutions and attention; bytes also from those of "
    "pointwise operators, softmax and layer norm, with each operand moved once. They are charged to the innermost "
    "operator with a formula. A dash: there is no formula, or the trace lacks the shapes. Time is GPU time; without a "
    "GPU, operator self time. Time on matrix units (Tensor Cores) or vector units is known where kernel names give it; "
    "Winograd and FFT kernels are in neither.",
    keys=("work", "shapes", "dtype"),
    columns=read_columns("""
        time        ns     time
        calls       count  calls
        flop        flop   FLOPs
        flop_time   ns     time with known FLOPs
        bytes       bytes  bytes moved
        bytes_time  ns     time with known bytes
        matrix      ns     on matrix units
        vector      ns     on vector units
    """),
    rates=(
        *read_rates("""
            tflop_s  flop / flop_time    1e-3  TFLOP/s
            gb_s     bytes / bytes_time  1     GB/s
        """),
        Rate("part_of_peak", "share of peak", part_of_peak, is_part=True),
    ),
    arguments=("Concrete Inputs",),
)

NOT_RECORDED = "shapes not recorded"
PARTS = ("aten::cudnn_convolution_backward_input", "aten::cudnn_convolution_backward_weight")
WHOLE = "aten::cudnn_convolution_backward"
"""Operators whose arguments lack the size of the weight, and the operator around them whose arguments have it."""
FEWER = re.compile(r"winograd|Sp3AsmConv|(?<![a-z])fft", re.IGNORECASE)
"""Kernels that need fewer operations than the formulas count."""
UNKNOWN_UNITS, VECTOR, MATRIX, BY_FEWER = range(4)
"""Units that compute, by kernel name; if an operator's kernels differ, the last in this order counts."""
UNITS = {None: UNKNOWN_UNITS, False: VECTOR, True: MATRIX}


def rates_rows(context: Context) -> TableRows:
    """Rows by kind of work, shapes and dtype; work without a formula by its operator. Times sum to the kernel account,
    or without a GPU to the operators' self times.
    """
    trace, ops = context.trace, context.ops
    on_gpu = len(context.gpu.rows) > 0
    position, step, ns, name = _items(context)
    charged = values_at(ops.nearest(_charged(context)), position)
    if on_gpu:  # copies between memories have their own table, and no peak here
        copied = np.flatnonzero((charged >= 0) & (context.gpu.category != cat.KERNEL))
        charged[copied[ops.matches(has_traffic)[charged[copied]]]] = -1
    operator = values_at(ops.nearest(context.calls.operator), position)
    work, works = _works(ops, charged)
    first = _first_of(np.where(charged >= 0, charged, operator), charged >= 0, step)
    flop, size = (
        int64_of([-1 if amount is None else amount for amount in column])[work]
        for column in ([w.flop for w in works], [w.bytes for w in works])
    )
    has_flop, moved = flop >= 0, size >= 0
    units = _units(trace, name, charged) if on_gpu else zeros(len(position))
    columns = [
        ns,
        first,
        flop * (first & has_flop),
        ns * has_flop,
        size * (first & moved),
        ns * moved,
        ns * (has_flop & (units == MATRIX)),
        ns * (has_flop & (units == VECTOR)),
    ]
    operator_name = values_at(ops.name, operator)
    kinds, names = len(works), len(trace.names)
    label = np.where(work > 0, work, np.where(operator_name >= 0, kinds + operator_name, kinds + names + name))

    def key(code: int) -> tuple[str, str, str]:
        if code < kinds:
            return works[code].kind, works[code].shapes or NOT_RECORDED, works[code].dtype
        label = trace.names[(code - kinds) % names]
        return label if code < kinds + names else f"no operator: {context.families.of_kernel(label, None)}", "", ""

    place, first_of_label = combined(label)
    texts = [key(code) for code in label[first_of_label].tolist()]
    keys: list[Key] = [(place, [text[part] for text in texts]) for part in range(len(RATES.keys))]
    return summed(step, keys, columns)


def _items(context: Context) -> tuple[Int64 | Codes, Int64, Int64, Codes]:
    """(position of the launch in the ops lane, −1 for none; step; ns; name) of the GPU events; of the operators of a
    file without, their own positions and self times.
    """
    gpu, ops = context.gpu, context.ops
    if len(gpu.rows):
        return context.calls.position[gpu.launch], gpu.step, gpu.ns, gpu.name
    position = np.flatnonzero(context.calls.operator)
    step = context.steps.positions_at(ops.start[position])
    return position, step, ops.self_ns[position], ops.name[position]


def _charged(context: Context) -> Bools:
    """bool[n]: operators with a formula for FLOPs without another such one inside, and those with traffic without the
    same one inside.
    """
    ops = context.ops
    cpu_op = ops.category == cat.CPU_OP
    heavy, light = (cpu_op & ops.matches(has_formula) for has_formula in (has_flop, has_traffic))
    base = numbered_texts(map(base_of, ops.trace.names))[0][ops.name]
    out: Bools = heavy | light
    for kind, alike in ((heavy, np.zeros_like(base)), (light, base)):
        inner = np.flatnonzero(kind)
        around = ops.nearest_around(kind)[inner]
        out[around[(around >= 0) & (alike[inner] == alike[around])]] = False
    return out


def _works(ops: Lane, charged: Int64) -> tuple[Int64, list[OperatorWork]]:
    """(int64[m] index of each item's work, the works; the first is that of no formula). Equal arguments are read
    once.
    """
    trace = ops.trace
    owners, owner = np.unique(charged, return_inverse=True)
    none = int(len(owners) > 0 and owners[0] < 0)
    owners = owners[none:]
    rows, outer = ops.rows[owners], ops.parent[owners]
    partial = trace.name_matches(PARTS.__contains__, rows) & (outer >= 0)
    partial[partial] = trace.name_matches(WHOLE.__eq__, ops.rows[outer[partial]])
    described = np.where(partial, ops.rows[outer], rows)
    texts = [
        trace.text_column(a, cat.CPU_OP)[described]
        for a in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    ]
    code, first = combined(trace.name[rows], *texts)
    columns = tuples(*(text[first] for text in texts))
    inputs_of_calls = [read_inputs(*map(trace.text, codes)) for codes in columns]
    read = list(zip(trace.names_of(rows[first]), inputs_of_calls, strict=True))
    outputs = recorded_outputs(read)
    works = [flop_work(op, inputs, outputs) or traffic_work(op, inputs) for op, inputs in read]
    return np.concatenate((zeros(none), code + 1))[owner], [OperatorWork(""), *works]


def _first_of(owner: Int64, charged: Bools, step: Int64) -> Bools:
    """bool[m]: the item of each owner that its call and work count at; items of none (−1) are their own. It is one that
    is charged with the work, if any is, whether or not the operator copied first.
    """
    order = np.lexsort((step, ~charged, owner))
    first = owner < 0
    first[order[changes(owner[order])]] = True
    return first


def _units(trace: Trace, name: Codes, charged: Int64) -> Int64:
    """int64[m]: the units that compute each item's operator."""
    unit = int64_of([BY_FEWER if FEWER.search(n) else UNITS[uses_tensor_cores(n)] for n in trace.names])[name]
    owner, first = combined(charged)
    return most(owner, unit, len(first))[owner]
