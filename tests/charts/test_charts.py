"""Charts of real and of built comparisons: what they show, that they stay small, and that names show as text."""

import json
import subprocess
import sys
from html import unescape

import pytest
from build_trace import annotation, call, document, kernel, memory, op, step, write
from msgspec import structs
from msgspec.structs import replace
from traces import needs_traces, trace

import tracediff
from tracediff import charts
from tracediff.charts.labels import full_name, label, lines
from tracediff.diff.ops import Op
from tracediff.errors import TracediffError
from tracediff.formatting import signed_time, time
from tracediff.structs import Pair

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    '<a href="https://example.org/">a</a><b>b</b>',
    "{{x}}${x} $\\href{x}{y}$ %{x} %{customdata}",
    "\u202ertl\x00\x07\x1b[31m\n&lt;&#60;",
    "n" * 10_000,
)
LARGEST = 2_000_000


def events(scale=1, names=("gemm", "add")):
    """Two steps with two operators that launch a kernel each; the kernels take ``scale`` times 20 and 10 µs."""
    out = []
    for k in range(2):
        start = 200 * k
        out.append(step(k + 1, start, 100))
        for j, name in enumerate(names):
            begin, number = start + 10 + 30 * j, 10 * k + j + 1
            out += [op(f"aten::{name}", begin, 20), call("cudaLaunchKernel", begin + 2, 3, correlation=number)]
            out.append(kernel(name, begin + 20, 10 * (2 - j % 2) * scale, correlation=number))
    return out


def built(folder, control=None, test=None, **options):
    paths = [
        write(folder / side / "trace.json", document(side_events))
        for side, side_events in (("control", control or events()), ("test", test or events(2)))
    ]
    return tracediff.compare(*map(str, paths), **options).comparison


def texts(figure):
    """All strings of a figure that plotly reads as markup or text."""
    found = []

    def walk(value):
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(json.loads(figure.to_json()))
    return found


@pytest.fixture
def comparison(tmp_path):
    return built(tmp_path)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", charts.NAMES)
def test_each_chart_has_a_title_or_says_what_is_missing(comparison, name, theme):
    figure = getattr(charts, name)(comparison, theme=theme)
    assert figure.layout.title.text or figure.layout.annotations[0].text
    assert len(figure.to_json()) < LARGEST


def test_a_theme_that_is_unknown_is_an_error(comparison):
    for name in charts.NAMES:
        with pytest.raises(TracediffError, match="light, dark"):
            getattr(charts, name)(comparison, theme="pink")


def test_importing_tracediff_or_charts_loads_no_plotly():
    code = (
        "import sys, tracediff, tracediff.api, tracediff.charts; print([m for m in ('pandas', 'plotly') if m in "
        "sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_the_names_are_functions_also_after_their_modules_are_imported(comparison):
    for _ in range(2):
        for name in charts.NAMES:
            assert callable(getattr(charts, name))
            getattr(charts, name)(comparison)
    with pytest.raises(AttributeError):
        _ = charts.nothing


def test_a_diff_has_its_charts(comparison):
    accessor = tracediff.Diff(comparison).charts
    assert dir(accessor) == sorted(charts.NAMES)
    assert accessor.step_waterfall(theme="dark").to_json() == charts.step_waterfall(comparison, theme="dark").to_json()
    assert accessor.launches.__doc__ == charts.launches.__doc__
    with pytest.raises(AttributeError, match="step_waterfall"):
        _ = accessor.nothing


def test_the_waterfall_goes_from_control_to_test(comparison):
    figure = charts.step_waterfall(comparison)
    (bars,) = figure.data
    first, *changes, last = bars.x
    assert bars.measure == ("absolute", *["relative"] * len(changes), "total")
    assert changes
    assert first + sum(changes) == pytest.approx(last)
    assert last == pytest.approx(comparison.us(comparison.step_time.period.test))
    assert "together they are the whole change" in unescape(figure.layout.title.text).replace("<br>", " ")


def test_small_changes_of_the_waterfall_share_a_bar_and_a_flat_one_says_where_its_axis_starts(tmp_path):
    test = events()
    test[-1] = kernel("add", 260, 13, correlation=12)
    figure = charts.step_waterfall(built(tmp_path, test=test))
    assert "The axis starts at" in figure.layout.title.text.replace("<br>", " ")
    assert figure.layout.xaxis.range[0] > 0


def test_durations_and_counts_are_the_table_s(comparison):
    rows = {o.name: o for o in comparison.ops if o.category == "kernel"}
    for draw, pick in (
        (charts.duration_diff, lambda o: o.self_time.map(comparison.us)),
        (charts.counts_diff, lambda o: o.count.map(comparison.number)),
    ):
        figure = draw(comparison, sort="name")
        names = list(figure.layout.yaxis.ticktext)
        assert names == sorted(rows)
        assert list(figure.data[0].x) == [pick(rows[n])[0] for n in names]
        assert list(figure.data[1].x) == [pick(rows[n])[1] for n in names]
    assert [bar.name for bar in charts.duration_diff(comparison).data[2:]] == ["difference: slower"]
    assert charts.duration_diff(comparison).layout.title.text.count("gemm") == 1


def test_bars_are_sorted_and_cut(comparison):
    assert list(charts.duration_diff(comparison, top=1).layout.yaxis.ticktext) == ["gemm"]
    assert "1 of 2 operations" in charts.duration_diff(comparison, top=1).layout.title.text
    assert "nothing changed" in charts.duration_diff(comparison, top=0).layout.annotations[0].text
    cpu = charts.duration_diff(comparison, device="cpu", sort="control", time="total")
    assert list(cpu.layout.yaxis.ticktext)[:2] == ["aten::add", "aten::gemm"]
    for wrong in ({"sort": "size"}, {"device": "tpu"}, {"time": "wall"}):
        with pytest.raises(TracediffError, match="unknown value"):
            charts.duration_diff(comparison, **wrong)


def test_families_add_up_to_the_account(comparison):
    figure = charts.families(comparison)
    assert [sum(bar.x[k] for bar in figure.data) for k in (0, 1)] == pytest.approx(
        [*comparison.work.time.map(comparison.us)]
    )


def test_distributions_show_every_step_and_the_interval_where_there_is_one(comparison):
    figure = charts.distributions(comparison)
    assert [len(box.y) for box in figure.data] == [
        len(s) for side in (comparison.control, comparison.test) for s in side.steps.values()
    ]
    assert "significance unknown" in figure.layout.title.text.replace("<br>", " ")
    tested = replace(comparison, verdict=replace(comparison.verdict, ci95_us=(10.0, 20.0)))
    assert "+10.0 µs to +20.0 µs" in charts.distributions(tested).layout.title.text.replace("<br>", " ")


def test_long_runs_are_drawn_by_evenly_chosen_steps(comparison):
    first_step = next(iter(comparison.control.steps.values()))[0]
    steps = [structs.replace(first_step, number=k, states={"op": 1000 + k}) for k in range(50_000)]
    long = replace(comparison, control=replace(comparison.control, steps={"run": steps}))
    figure = charts.distributions(long)
    assert len(figure.to_json()) < LARGEST
    assert (min(figure.data[0].y), max(figure.data[0].y)) == (1.0, 50.999)
    assert "sampled evenly" in figure.layout.title.text.replace("<br>", " ")


def test_every_mark_of_the_timeline_has_an_id_of_its_own(comparison):
    for bars in charts.timeline(comparison).data:
        assert len(set(bars.ids)) == len(bars.ids) == len(bars.x)


def test_without_a_gpu_no_state_is_called_idle(tmp_path):
    cpu = [e for e in events() if e["cat"] in ("cpu_op", "user_annotation")]
    shown = [
        text for bars in charts.timeline(built(tmp_path / "a", cpu, cpu)).data for text in (bars.name, *bars.customdata)
    ]
    assert any("aten::" in text for text in shown)
    assert not any("idle" in text for text in shown)


def test_ranks_say_that_there_is_one_only(comparison):
    assert "No set has several ranks" in charts.ranks(comparison).layout.annotations[0].text


def test_negative_thread_ids_are_shown_as_perfetto_shows_them(tmp_path):
    signed = [e | {"tid": -413137216} if e["cat"] == "cpu_op" else e for e in events()]
    rows = charts.timeline(built(tmp_path, signed)).layout.yaxis.ticktext
    assert "thread 3881830080 ops" in rows


def of_ranks(folder, **ranks):
    """A comparison whose sides have a file for each of these ranks."""
    for side, numbers in ranks.items():
        for rank in numbers:
            write(folder / side / f"rank{rank}.json", document(events(1 + rank), distributedInfo={"rank": rank}))
    return tracediff.compare(str(folder / "control"), str(folder / "test")).comparison


def test_ranks_show_their_times_without_states_that_none_has(tmp_path):
    figure = charts.ranks(of_ranks(tmp_path, control=(0, 1), test=(0, 1)))
    for heat in figure.data:
        assert [[float(text) for text in row] for row in heat.text] == [[round(z, 1) for z in row] for row in heat.z]
        assert all(any(float(row[k]) for h in figure.data for row in h.text) for k in range(len(heat.x)))
        assert sum("sets 2 steps" in tick for tick in figure.layout.yaxis.ticktext) == 1


def test_a_mark_that_a_border_of_the_step_cuts_says_how_much_is_in_view(tmp_path):
    running = [*events(), kernel("long", 95, 300, correlation=99)]
    marks = [text for bars in charts.timeline(built(tmp_path, running)).data for text in bars.customdata]
    assert any(text.startswith("<b>long</b>") and " in view, at " in text for text in marks)
    assert any(text.startswith("<b>aten::gemm</b><br>20.0 µs, at ") for text in marks)


def test_a_step_that_is_not_the_median_is_not_called_typical(tmp_path):
    """Of two steps none is the median: the title said 1,000 → 1,500 µs, and the verdict that nothing changed."""
    for side, periods in (("a", (1000, 2000)), ("b", (1500, 1500))):
        starts = (0, periods[0])
        write(
            tmp_path / side / "t.json",
            document(
                [
                    event
                    for start, us in zip(starts, periods, strict=True)
                    for event in (step(start + 1, start, us), op("aten::mm", start, us))
                ]
            ),
        )
    diff = tracediff.compare(tmp_path / "a", tmp_path / "b")
    title = diff.charts.timeline().layout.title.text.replace("<br>", " ")
    assert title.startswith("<b>One step of each side: 1,000 → 1,500 µs; the median step: 1,500 → 1,500 µs")


def test_kernels_of_the_timeline_have_the_names_of_the_tables(tmp_path):
    raw = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
    comparison = built(tmp_path, events(names=("gemm", raw)))
    (name,) = [op.name for op in comparison.ops if op.raw_name == raw]
    bars = charts.timeline(comparison).data
    assert name != raw
    assert label(name, 80) in [text for bar in bars for text in bar.text]
    assert any(text.startswith(f"<b>{full_name(name)}</b>") for bar in bars for text in bar.customdata)


def test_ranks_that_one_side_lacks_are_said(tmp_path):
    missing = charts.ranks(of_ranks(tmp_path, control=(0, 1), test=(0,))).layout.annotations[0].text
    assert "Only one rank is on both sides (recorded: 0–1 → 0)." in missing.replace("<br>", " ")


def test_one_rank_against_another_is_said(tmp_path):
    sentence = charts.ranks(of_ranks(tmp_path, control=(0,), test=(1,))).layout.annotations[0].text
    assert "One rank is compared with another (recorded: 0 → 1)." in sentence.replace("<br>", " ")


def test_equal_peaks_of_memory_are_said_once(tmp_path):
    with_memory = [*events(), memory(12, 5_000, 5_000)]
    title = charts.memory(built(tmp_path, with_memory, with_memory)).layout.title.text
    assert "5.00 kB on both sides" in title.replace("<br>", " ")


def test_long_names_that_differ_look_different(tmp_path):
    names = [f"void a_very_long_kernel_name_{k}_with_the_same_beginning_and_the_same_end" for k in range(3)]
    ticks = charts.duration_diff(built(tmp_path, events(1, names), events(2, names))).layout.yaxis.ticktext
    assert len(set(ticks)) == 3


def test_launches_count_the_calls(comparison):
    figure = charts.launches(comparison)
    assert list(figure.layout.yaxis.ticktext) == ["cudaLaunchKernel"]
    assert [list(bar.x) for bar in figure.data] == [[2.0], [6.0], [2.0], [6.0]]


@pytest.mark.slow
def test_what_is_missing_is_said(tmp_path):
    cpu = [e for e in events() if e["cat"] in ("cpu_op", "user_annotation")]
    both = built(tmp_path / "a", cpu, cpu)
    assert "no runtime calls" in charts.launches(both).layout.annotations[0].text
    bare = [step(1, 0, 10), step(2, 20, 10), annotation("x", 1, 2), kernel("k", 3, 4)]
    for name in charts.NAMES:
        getattr(charts, name)(built(tmp_path / "b", bare, bare))
    refused = built(tmp_path / "c", cpu, events())
    assert refused.was_refused
    for name in charts.NAMES:
        figure = getattr(charts, name)(refused)
        assert (
            name in ("distributions", "timeline", "ranks", "memory")
            or "not compared" in figure.layout.annotations[0].text
        )


@pytest.mark.parametrize("name", charts.NAMES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_hostile_names_show_as_text(tmp_path, name, theme):
    control, test = events(names=HOSTILE), events(2, names=HOSTILE[::-1])
    hostile = built(tmp_path, control, test, force=True)
    runs = [
        {HOSTILE[2 + k]: steps for k, steps in enumerate(s.steps.values())} for s in (hostile.control, hostile.test)
    ]
    sides = [replace(s, label=HOSTILE[k], steps=runs[k]) for k, s in enumerate((hostile.control, hostile.test))]
    figure = getattr(charts, name)(replace(hostile, control=sides[0], test=sides[1]), theme=theme)
    for text in texts(figure):
        rest = text
        for markup in ("<br>", "<b>", "</b>", "</span>", "<extra></extra>"):
            rest = rest.replace(markup, "")
        rest = (
            rest.partition('<span style="font-size:12px')[0]
            + rest.partition('<span style="font-size:12px')[2].partition(">")[2]
        )
        assert "<" not in rest, rest
        assert ">" not in rest, rest
        assert all(c.isprintable() for c in rest), ascii(rest)
        assert "$" not in rest
        assert len(text) < 4_000
    for data in figure.data:
        assert "alert" not in (data.hovertemplate or "")
        assert "alert" not in (getattr(data, "texttemplate", None) or "")


def test_a_label_is_no_template(tmp_path):
    """Side labels stand in the waterfall's hover template: `%{` in them must not be looked up."""
    comparison = built(tmp_path)
    named = replace(comparison, control=replace(comparison.control, label="%{x} %{customdata}"))
    for name in charts.NAMES:
        for data in getattr(charts, name)(named).data:
            assert "%{x}" not in (data.hovertemplate or "")


@pytest.mark.slow
def test_ten_thousand_operations_stay_below_the_limit(comparison):
    def operation(k, category):
        name = f"void at::native::kernel_{k}<{'float, ' * 150}int>(int)"
        return Op(
            counted_as=f"kernel_{k}",
            raw_name=name,
            category=category,
            family="pointwise",
            count=Pair(5, 6),
            total=Pair(1000 + k, 2000 + k),
            self_time=Pair(1000 + k, 2000 + k),
        )

    many = replace(
        comparison, ops=tuple(operation(k, category) for category in ("kernel", "cuda_runtime") for k in range(10_000))
    )
    for name in charts.NAMES:
        assert len(getattr(charts, name)(many).to_json()) < LARGEST, name
    for draw in (charts.duration_diff, charts.counts_diff):
        assert len(draw(many, top=10_000).to_json()) < LARGEST


@needs_traces
@pytest.mark.parametrize("pair", [("hta_control", "hta_test"), ("dlrm_8ranks", "dlrm_8ranks")], ids=lambda p: p[0])
def test_charts_of_real_traces(pair):
    folders = [str(trace("hta_tiny/base.json.gz").parents[1] / name) for name in pair]
    comparison = tracediff.compare(*folders).comparison
    for name in charts.NAMES:
        figure = getattr(charts, name)(comparison)
        assert len(figure.to_json()) < LARGEST, name
    if pair[0] == "dlrm_8ranks":
        heat = charts.ranks(comparison).data
        assert len(heat) == 2
        assert len(heat[0].z) == 8
        assert all(row[-1] is not None for row in heat[0].z)


def test_words():
    assert [time(us) for us in (0, 0.5, 12.34, 999, 1234, 175_512, 2_500_000)] == [
        "0 ns", "500 ns", "12.3 µs", "999.0 µs", "1,234 µs", "175.5 ms", "2,500 ms",
    ]  # fmt: skip
    assert [signed_time(us) for us in (1500, -1500, 0)] == ["+1,500 µs", "−1,500 µs", "0 ns"]
    assert label("a<b> $x$ &amp;") == "a&lt;b&gt; &#36;x&#36; &amp;amp;"
    assert label("  ") == "(no name)"
    assert len(unescape(label("x" * 500))) == 28
    assert full_name("y" * 3000).endswith("… and 1,800 more characters")
    assert lines("takes 12 ms of 34 ms", 9) == "takes<br>12 ms of<br>34 ms"
