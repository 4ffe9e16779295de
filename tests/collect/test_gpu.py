"""What the collector does on a GPU, with stand-ins for torch.cuda, NVML and the events of the profiler."""

import sys
from types import SimpleNamespace

import pytest

from tracediff.collected import VariantRow
from tracediff.errors import TracediffError
from tracediff.ingest.manifest import read_manifest
from tracediff.present.collection import notes_of

torch = pytest.importorskip("torch")

from tracediff.collect import record, worker  # noqa: E402
from tracediff.collect.apply import OnnxModel  # noqa: E402
from tracediff.collect.measure import (  # noqa: E402  # noqa: E402
    GpuWatch,
    allow_tf32,
    dtype_of,
    gpu_environment,
    peak_memory,
    reset_peak_memory,
    timing_pass,
    use_device,
)
from tracediff.collect.variant import parse_variant  # noqa: E402


class Gpu:
    """A GPU whose steps take 5 ms each while the host goes on at once; it counts how often the host waits for it.

    Its first use initialises CUDA, and so does a profiler of GPUs, which waits for it at its end.
    """

    def __init__(self):
        self.queued_ms, self.waits, self.current, self.peak = 0.0, 0, None, 7
        self.is_initialised, self.allocations = False, 0

    def initialised(self, value=None):
        self.is_initialised = True
        return value

    def launch(self):
        self.initialised()
        self.queued_ms += 5
        self.allocations += 1

    def synchronise(self):
        self.initialised()
        self.waits += 1

    def event(self, **_):
        return Event(self)

    def statistics(self, _device):
        return {"allocation.all.allocated": self.allocations} if self.is_initialised else {}


class Event:
    def __init__(self, gpu):
        self.gpu, self.at = gpu, None

    def record(self):
        self.at = self.gpu.queued_ms

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return end.at - self.at


@pytest.fixture
def gpu(monkeypatch):
    gpu = Gpu()
    cuda = {
        "is_available": lambda: True,
        "is_initialized": lambda: gpu.is_initialised,
        "device_count": lambda: 1,
        "memory_stats": gpu.statistics,
        "get_rng_state": torch.get_rng_state,
        "synchronize": gpu.synchronise,
        "Event": gpu.event,
        "set_device": lambda index: gpu.initialised(setattr(gpu, "current", index)),
        "current_device": lambda: gpu.initialised(gpu.current),
        "max_memory_allocated": lambda: gpu.peak,
        "max_memory_reserved": lambda: 2 * gpu.peak,
        "reset_peak_memory_stats": lambda: setattr(gpu, "peak", 1),
        "get_device_capability": lambda: gpu.initialised((9, 0)),
        "get_device_name": lambda: gpu.initialised("a GPU"),
        "get_device_properties": lambda index: gpu.initialised(SimpleNamespace(uuid=f"0000-{index}")),
    }
    for name, value in cuda.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return gpu


def test_steps_are_timed_by_events_and_the_host_is_not_held_up(gpu):
    samples = timing_pass(gpu.launch, 4, "cuda")
    assert [s["wall_us"] for s in samples] == [5000.0] * 4
    assert all(s["cpu_us"] < 5000 for s in samples)
    assert gpu.waits == 1  # before the first step


@pytest.mark.parametrize(
    ("device", "environment", "index"), [("cuda:1", {}, 1), ("cuda", {}, 0), ("cuda", {"LOCAL_RANK": "3"}, 3)]
)
def test_each_rank_uses_its_own_gpu_and_a_numbered_one_is_used(gpu, monkeypatch, device, environment, index):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    use_device(device)
    assert gpu.current == index


@pytest.mark.usefixtures("gpu")
def test_peak_memory_is_that_of_the_steps_with_the_pools_of_graphs():
    assert peak_memory("cuda")["device"] == 7
    reset_peak_memory("cuda")
    assert (peak_memory("cuda")["device"], peak_memory("cuda")["reserved"]) == (1, 2)
    assert peak_memory("cpu")["reserved"] is None


class Nvml:
    """NVML of a machine on which the GPU is slowed down by heat in every other sample."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = "sm", "memory", "gpu"

    def __init__(self):
        self.asked, self.reads = None, 0

    def nvmlInit(self):
        pass

    def nvmlSystemGetDriverVersion(self):
        return b"570.86"

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self.asked = uuid
        return "handle"

    def nvmlDeviceGetClockInfo(self, gpu, kind):
        assert gpu == "handle"
        return {"sm": 1980 - 100 * (self.reads % 2), "memory": 2619}[kind]

    def nvmlDeviceGetPowerUsage(self, _):
        return 650_000

    def nvmlDeviceGetTemperature(self, _gpu, _kind):
        return 71

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _):
        self.reads += 1
        return 0x04 | (0x40 if self.reads % 2 == 0 else 0)  # a power limit is the usual state


def test_clocks_are_read_throughout_of_the_gpu_that_torch_uses(gpu, monkeypatch):
    nvml = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr("tracediff.collect.measure.INTERVAL_S", 0.001)
    gpu.current = 1
    with GpuWatch("cuda") as watch:
        while nvml.reads < 10:
            pass
    found = watch.summary()
    assert nvml.asked == "GPU-0000-1"
    assert found["throttled"] == pytest.approx(0.5, abs=0.1)
    assert (found["sm_mhz_least"], found["memory_mhz"], found["power_w"], found["temperature_c"]) == (
        1880,
        2619,
        650,
        71,
    )
    environment = gpu_environment()
    assert (environment["driver"], environment["capability"]) == ("570.86", "9.0")
    assert {"tf32", "cudnn_benchmark", "allocator", "triton"} <= environment.keys()


@pytest.mark.usefixtures("gpu")
def test_without_nvml_there_are_no_clocks(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with GpuWatch("cuda") as watch:
        pass
    assert watch.summary() is None
    assert watch.error == "nvidia-ml-py is not installed"
    assert gpu_environment()["driver"] is None


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetPowerUsage"])
def test_an_error_of_nvml_is_noted(monkeypatch, call):
    def refuse(*_):
        raise RuntimeError("Insufficient Permissions")

    nvml = Nvml()
    monkeypatch.setattr(nvml, call, refuse)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    with GpuWatch("cuda") as watch:
        pass
    assert (watch.summary(), watch.error) == (None, "Insufficient Permissions")
    driver = "unknown (Insufficient Permissions)" if call == "nvmlInit" else "570.86"
    assert gpu_environment()["driver"] == driver
    row = VariantRow(variant="eager", runs=1, clocks_error=watch.error)
    assert notes_of(row) == ["eager: whether the GPU was throttled is unknown: Insufficient Permissions"]


def recorded(name, start, device="CPU"):
    """An event as the profiler returns it."""
    return SimpleNamespace(
        name=lambda: name, start_ns=lambda: start, duration_ns=lambda: 5, device_type=lambda: f"DeviceType.{device}"
    )


def test_steps_of_the_gpu_s_own_annotations_are_no_steps():
    steps = [recorded("ProfilerStep#0", 0), recorded("ProfilerStep#0", 2, "CUDA"), recorded("ProfilerStep#1", 10)]
    assert record._empty_steps([*steps, recorded("aten::mm", 1), recorded("gemm", 12, "CUDA")]) == ["ProfilerStep#1"]


@pytest.mark.parametrize("is_initialised", [False, True])
def test_work_on_the_cpu_beside_a_gpu_is_recorded_as_such(gpu, tmp_path, is_initialised):
    """Also where other code of the process has initialised CUDA."""
    gpu.is_initialised = is_initialised
    with record.record_steps(tmp_path, wait=0, warmup=1, active=2) as recorder:
        for _ in range(3):
            torch.ones(4) + 1
            recorder.step()
    assert gpu.is_initialised == is_initialised
    manifest = read_manifest(tmp_path)
    assert (manifest.settings.device, manifest.environment["gpu"]) == ("cpu", None)


@pytest.mark.parametrize(
    ("first_use", "wait", "remedy"),
    [(None, 0, "end other profilers"), (1, 2, "end other profilers"), (0, 0, "use it before the profiler starts")],
)
def test_a_trace_of_a_gpu_without_its_events_is_an_error(gpu, tmp_path, first_use, wait, remedy):
    """The GPU was used before the loop, in a step before the profiler starts, or later, when it cannot be recorded."""
    if first_use is None:
        gpu.launch()
    recording = record.recording(tmp_path / "trace.json.gz", wait, 1, 2, {})
    recorder = recording.__enter__()
    for step in range(wait + 3):
        torch.ones(4) + 1
        if step >= (first_use or 0):
            gpu.launch()
        recorder.step()
    with pytest.raises(TracediffError, match=f"no GPU event was recorded, though a GPU was used; {remedy}"):
        recording.__exit__(None, None, None)


def collected(folder, device, variant="eager", code="step = lambda: torch.ones(4) + 1"):
    """What a worker measures of a step of the CPU."""
    (folder / "on_cpu.py").write_text(f"import torch\n\ndef make_step(variant):\n    {code}\n    return step\n")
    steps = {"wait": 0, "warmup": 1, "active": 2, "timed": 2, "detail": "timing", "annotate": None, "provenance": True}
    target = {"workload": None, "target": f"{folder}/on_cpu.py", "size": None, "arguments": [], "variant": variant}
    run = {"threads": 1, "seed": 0, "rank": 0, "trace": f"{folder}/trace.json.gz", "phase_file": f"{folder}/phase"}
    return worker.run(worker.Spec(**steps, **target, **run, device=device))


def test_collecting_on_the_cpu_leaves_a_gpu_alone(gpu, tmp_path):
    assert collected(tmp_path, "cpu")["environment"]["gpu"] is None
    assert not gpu.is_initialised


@pytest.mark.usefixtures("gpu")
def test_collecting_on_a_gpu_that_the_steps_do_not_use_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(worker, "SETTLING_S", 0.0)
    with pytest.raises(TracediffError, match="--device cuda: no GPU event was recorded; use --device cpu if"):
        collected(tmp_path, "cuda")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("variant", ["compile", "compiled_optimizer"])
def test_compiling_for_the_cpu_needs_a_compiler_beside_a_gpu_too(monkeypatch, tmp_path, variant):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(TracediffError, match=f"--variant {variant}: torch.compile needs a C.. compiler and found none"):
        collected(tmp_path, "cpu", variant)
    with pytest.raises(RuntimeError, match="built"):
        collected(tmp_path, "cuda", variant, code="raise RuntimeError('built')")


@pytest.mark.parametrize("available", [[], ["CUDAExecutionProvider"]])
def test_onnxruntime_must_not_fall_back_to_the_cpu(monkeypatch, available):
    """The provider is missing, or it is there and cannot be used."""
    onnxruntime = SimpleNamespace(
        SessionOptions=SimpleNamespace,
        get_available_providers=lambda: [*available, "CPUExecutionProvider"],
        InferenceSession=lambda *_, **__: SimpleNamespace(get_providers=lambda: ["CPUExecutionProvider"]),
    )
    monkeypatch.setitem(sys.modules, "onnxruntime", onnxruntime)
    monkeypatch.setattr(torch.onnx, "export", lambda *_, **__: None)
    with pytest.raises(TracediffError, match="--variant onnx: onnxruntime does not run on this device"):
        OnnxModel("onnx", torch.nn.Linear(2, 2).eval(), (SimpleNamespace(is_cuda=True),))


def test_tf32_is_allowed_where_it_is_asked_for(monkeypatch):
    before = torch.get_float32_matmul_precision()
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    try:
        allow_tf32()
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == ("high", True)
    finally:
        torch.set_float32_matmul_precision(before)
    assert dtype_of(torch.ones(2), parse_variant("compile+tf32")) == "tf32"


def test_autocast_takes_the_kind_of_a_numbered_device():
    with parse_variant("amp").autocast("cpu:0"):
        assert torch.is_autocast_enabled("cpu")
