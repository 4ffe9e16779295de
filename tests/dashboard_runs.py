"""A folder of small built sets for the dashboard."""

from build_trace import call, document, kernel, memory, op, step, write

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "{{x}}${x} %{customdata} $\\href{javascript:alert(1)}{y}$",
    '"><svg onload=alert(1)>',
    "[a](javascript:alert(1)) ![b](http://example.org/b.png)",
    "=HYPERLINK(1)",
    "\u202ertl\x00\x07\x1b[31m",
    "n" * 3000,
)


def events(scale=1, names=("mm", "add", "relu"), steps=4):
    """Steps in each of which every name is an operator with a kernel of ``scale`` times 20 µs, and some memory."""
    out = []
    for k in range(steps):
        length = (80 + 20 * scale) * len(names)
        start = length * k
        out += [step(k + 1, start, length - 5), memory(start + 1, 100, 1000 + k)]
        for j, name in enumerate(names):
            begin, number = start + 80 * j, 1000 * k + j + 1
            out += [
                op(f"aten::{name}", begin, 20, **{"Input Dims": [[2, 3]]}),
                call("cudaLaunchKernel", begin + 2, 3, correlation=number),
            ]
            out.append(kernel(f"{name}_kernel", begin + 20, 20 * scale + k, correlation=number))
    return out


def make_runs(folder):
    """Sets: base, faster, slower, two ranks, one without a GPU, hostile names, and a file that is no trace."""
    for name, scale in (("base", 2), ("faster", 1), ("slower", 3)):
        write(folder / name / "trace.json", document(events(scale)))
    for rank in (0, 1):
        write(folder / "ranks" / f"rank{rank}.json", document(events(rank + 1), distributedInfo={"rank": rank}))
    for k, name in enumerate(("hostile-a", "hostile-b")):
        write(folder / name / "trace.json", document(events(k + 1, HOSTILE)))
    write(
        folder / "host" / "trace.json", document([e for e in events(2) if e["cat"] not in ("kernel", "cuda_runtime")])
    )
    (folder / "bad").mkdir()
    (folder / "bad" / "trace.json").write_text('{"traceEvents": 5}')
    return folder
