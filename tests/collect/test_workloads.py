"""Every workload builds, steps, and gives the same result in every way it can be written."""

import inspect
from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from tracediff.collect.variant import parse_variant  # noqa: E402
from tracediff.collect.workloads import NAMES, workload  # noqa: E402
from tracediff.collect.workloads.transformers import Bert, Vit  # noqa: E402
from tracediff.collect.workloads.vision import ResNet  # noqa: E402
from tracediff.errors import TracediffError  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is deprecated:DeprecationWarning", "ignore:This DataLoader will create"
)

UNCOMPILED = [
    (name, text)
    for name in NAMES
    for text in workload(name).variants
    if not parse_variant(text, workload(name).own).compiles
]


@pytest.fixture(autouse=True)
def one_thread_and_no_group_left():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


SHALLOW = {"vit": {"depth": 1}}
"""Fewer parameters, whose updates take seconds each to compile."""


def tiny(name, text):
    module = workload(name)
    torch.manual_seed(0)
    return module.make(parse_variant(text, module.own), "cpu", **module.sizes["tiny"] | SHALLOW.get(name, {}))


CAPTURED = "compile:backend=eager"
"""Has the graphs of every backend, and compiles none of them."""


def second_step(name, text):
    """What the second step returns: after an optimizer's first."""
    torch._dynamo.reset()
    task = tiny(name, text)
    torch.manual_seed(1)
    task.step()
    return task.step()


def counts_of(step):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        step()
    return Counter(event.name for event in profiler.events())


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name):
    module = workload(name)
    assert module.title
    assert "\n" not in module.title
    assert list(module.sizes) == ["tiny", "small", "full"]
    variants = [parse_variant(text, module.own) for text in module.variants]
    for size in module.sizes.values():
        assert size.keys() == module.sizes["tiny"].keys()
        inspect.signature(module.make).bind(variants[0], **size)


@pytest.mark.parametrize(("name", "text"), UNCOMPILED)
def test_it_does_the_same_work_in_every_step(name, text):
    step = tiny(name, text).step
    for _ in range(3):
        step()
    first, second = counts_of(step), counts_of(step)
    assert first == second
    assert first


@pytest.mark.parametrize(
    ("name", "control", "test"),
    [
        ("vit", "eager", "compiled_optimizer"),
        ("vit", "workers0", "workers2"),
        ("vit-distill", "eager", "one_graph"),
        ("vit-distill", "expert", "expert+one_graph"),
        ("vit-distill", "expert", "aot_eager+expert+loss_compiled"),
        ("vit-distill", "eager", "aot_eager+loss_eager"),
        ("vit-distill", "eager", "aot_eager+loss_compiled"),
        ("graph-breaks", "breaks", "fixed"),
        ("graph-breaks", "breaks+inference", "fixed+inference"),
        ("graph-breaks", "breaks", "aot_eager+breaks"),
        ("graph-breaks", "breaks", "aot_eager+fixed_item+fixed_numpy"),
        ("graph-breaks-allreduce", "breaks", "fixed"),
        ("graph-breaks-allreduce", "breaks", "aot_eager+fixed"),
        ("dynamic-shapes", "eager", "aot_eager"),
        ("sincos", "eager", "compile"),
        ("resnet18", "eager", "channels_last"),
        ("resnet50", "eager", "channels_last"),
        ("numpy", "eager", "compile"),
        ("numpy", "batched", "compile+batched"),
        ("sincos", "scalar", "compile+scalar"),
        ("bert", "inference", "aot_eager+inference"),
        ("mlp", "eager", "script"),
        ("mlp", "eager", "trace"),
        ("mlp", "eager", "export"),
        ("mlp", "eager", "script+reloaded"),
        ("mlp", "eager", "trace+reloaded"),
        ("mlp", "eager", "export+reloaded"),
        ("mlp", "training", "script+training"),
        ("conv-bn", "eager", "fx_fused"),
        ("ensemble", "loop", "vmap"),
        ("ensemble", "loop+same", "vmap+same"),
        ("per-sample-grad", "loop", "vmap"),
        ("jacobian", "loop", "jacrev"),
        ("jacobian", "loop", "jacfwd"),
        ("jacobian", "loop+tall", "jacfwd+tall"),
        ("jacobian", "loop+weights", "jacrev+weights"),
        ("jacobian", "loop+weights", "jacfwd+weights"),
        ("jacobian", "loop+batched", "jacrev+batched"),
        ("hessian", "loop", "jacfwd_jacrev"),
        ("hessian", "loop", "jacfwd_jacfwd"),
        ("hessian", "loop+batched", "jacfwd_jacrev+batched"),
        ("hessian", "loop", "jacrev_jacrev"),
        ("hvp", "revrev", "fwdrev"),
        ("hvp", "revrev", "vhp"),
        ("forward-ad", "dual", "jvp"),
        ("forward-ad", "dual", "custom"),
        ("forward-ad", "dual_parameters", "jvp_parameters"),
        ("dataloader", "workers0", "workers4"),
    ],
)
def test_its_ways_give_the_same_result(name, control, test):
    torch.testing.assert_close(second_step(name, test), second_step(name, control), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "text", "regions"),
    [
        ("graph-breaks", CAPTURED, 5),
        ("graph-breaks", f"{CAPTURED}+fixed", 1),
        ("graph-breaks-allreduce", CAPTURED, 6),
        ("graph-breaks-allreduce", f"{CAPTURED}+fixed", 1),
    ],
)
def test_four_breaks_make_five_graphs_and_a_sixth_in_the_caller(name, text, regions):
    torch._dynamo.reset()
    step = tiny(name, text).step
    for _ in range(3):
        step()
    assert (
        sum(count for event, count in counts_of(step).items() if event.startswith("Torch-Compiled Region")) == regions
    )


@pytest.mark.parametrize("fixed", ["item", "print", "numpy", "assert"])
def test_each_break_can_be_fixed_alone(fixed):
    torch._dynamo.reset()
    step = tiny("graph-breaks", f"{CAPTURED}+fixed_{fixed}").step
    for _ in range(3):
        step()
    assert sum(n for event, n in counts_of(step).items() if event.startswith("Torch-Compiled Region")) == 4


def test_the_own_rule_for_forward_mode_is_right():
    from tracediff.collect.workloads.transforms import Tanh

    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Tanh.apply, x, check_forward_ad=True)


def test_float16_trains_through_a_scaler():
    task = tiny("mlp", "eager+fp16+training")
    before = [parameter.detach().clone() for parameter in task.model.parameters()]
    loss = task.step()
    assert not all(torch.equal(a, b) for a, b in zip(before, task.model.parameters(), strict=True))
    torch.manual_seed(0)
    torch.testing.assert_close(loss, tiny("mlp", "training").step(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("text", "advice"),
    [("script+reloaded+training", "leave the variant out"), ("reloaded", "script, trace, export, onnx, as in script")],
)
def test_only_a_captured_model_for_inference_is_reloaded(text, advice):
    with pytest.raises(TracediffError, match=f"reloaded .*{advice}"):
        tiny("mlp", text)


@pytest.mark.parametrize("size", ["tiny", "small", "full"])
def test_at_every_size_a_tall_jacobian_is_less_work_in_forward_mode_and_a_wide_one_in_reverse(size):
    def work(text):
        module = workload("jacobian")
        step = module.make(parse_variant(text, module.own), "meta", **module.sizes[size]).step
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_flops=True) as profiler:
            step()
        return sum(event.flops or 0 for event in profiler.events())

    assert work("jacrev+tall") > 32 * work("jacfwd+tall") > 0
    assert work("jacfwd") > 32 * work("jacrev") > 0


def test_a_compiled_loss_needs_a_compiler():
    with pytest.raises(TracediffError, match="write compile\\+loss_compiled"):
        tiny("vit-distill", "loss_compiled")


def test_the_models_have_the_parameters_of_their_papers():
    def parameters(model):
        return sum(p.numel() for p in model.parameters())

    with torch.device("meta"):
        bert = {key: value for key, value in workload("bert").sizes["full"].items() if key != "batch"}
        vit = {key: value for key, value in workload("vit").sizes["full"].items() if key != "batch"}
        assert parameters(ResNet(workload("resnet18").sizes["full"]["depths"], bottlenecks=False)) == 11_689_512
        assert parameters(ResNet(workload("resnet50").sizes["full"]["depths"], bottlenecks=True)) == 25_557_032
        assert parameters(Bert(**bert)) == 109_514_298
        assert parameters(Vit(**vit)) == 86_567_656 - 2 * 768  # no class token and no position of it
