"""What torch.func transforms: ensembles, per-sample gradients, Jacobians, Hessians, derivatives in forward mode."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import functional
from torch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from torch.nn.functional import cross_entropy

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.functions import perceptron
from tracediff.collect.workloads.harness import calling, described


@described(
    "inference of an ensemble of perceptrons",
    "models inputs width depth classes batch",
    tiny=(40, 64, 64, 2, 10, 8),
    small=(10, 784, 128, 2, 10, 64),
    full=(64, 784, 512, 2, 10, 64),
    variants=("loop", "vmap", "vmap+compile"),
    own=("loop", "vmap", "different", "same"),
)
def ensemble(variant: Variant, models: int, batch: int, **size: Any) -> Task:
    """The inference step: each model has its own minibatch; with ``same`` all models share one."""
    members = nn.ModuleList(perceptron(**size) for _ in range(models)).eval()
    minibatches = torch.randn(models, batch, size["inputs"])
    same = variant.choice("different", "same") == "same"
    x = minibatches[0] if same else minibatches
    state = stack_module_state(members)
    template = copy.deepcopy(members[0]).to("meta")

    def predict(state: Any, x: Tensor) -> Tensor:
        return functional_call(template, state, (x,))

    def by_vmap(x: Tensor) -> Tensor:
        return vmap(predict, in_dims=(0, None if same else 0))(state, x)

    def by_loop(x: Tensor) -> Tensor:
        each = models * [x] if same else x
        return torch.stack([member(minibatch) for member, minibatch in zip(members, each, strict=True)])

    predictions = variant(by_vmap if variant.choice("loop", "vmap") == "vmap" else by_loop)
    return calling(variant, predictions, x, model=members, gradients=False)


def convnet(image: int, width: int) -> nn.Module:
    """Two convolutions and two linear layers, for digits."""
    convolutions = nn.Sequential(
        nn.Conv2d(1, width, 3), nn.ReLU(), nn.Conv2d(width, 2 * width, 3), nn.ReLU(), nn.MaxPool2d(2)
    )
    return nn.Sequential(
        convolutions, nn.Flatten(), nn.Linear(2 * width * (image // 2 - 2) ** 2, 128), nn.ReLU(), nn.Linear(128, 10)
    )


@described(
    "per-sample gradients of a small convolutional net",
    "image width batch",
    tiny=(16, 8, 8),
    small=(28, 32, 32),
    full=(28, 32, 256),
    variants=("loop", "vmap", "vmap+compile"),
    own=("loop", "vmap"),
)
def per_sample_grad(variant: Variant, image: int, width: int, batch: int) -> Task:
    """The step: each parameter's gradients, stacked over the samples."""
    model = convnet(image, width)
    images, labels = torch.randn(batch, 1, image, image), torch.randint(0, 10, (batch,))
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(parameters: Any, image: Tensor, label: Tensor) -> Tensor:
        return cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    def by_vmap(images: Tensor, labels: Tensor) -> list[Tensor]:
        return list(vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, labels).values())

    if variant.choice(*per_sample_grad.own) == "vmap":
        return calling(variant, variant(by_vmap), images, labels, model=model)
    forward = variant(model, images[:1])

    def by_loop(images: Tensor, labels: Tensor) -> list[Tensor]:
        losses = [cross_entropy(forward(x[None]), label[None]) for x, label in zip(images, labels, strict=True)]
        samples = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
        return [torch.stack(gradients) for gradients in zip(*samples, strict=True)]

    return calling(variant, by_loop, images, labels, model=model)


def by_rows(function: Callable[..., Tensor], argnum: int = 0) -> Callable[..., Tensor]:
    """What computes the Jacobian of ``function`` by one argument in a loop over its rows."""

    def jacobian(*inputs: Tensor) -> Tensor:
        y, pull_back = vjp(function, *inputs)
        return torch.stack([pull_back(row)[argnum] for row in torch.eye(len(y), device=y.device)])

    return jacobian


def by_samples(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What calls ``function`` in a loop over the samples in its last argument."""
    return lambda *inputs: torch.stack([function(*inputs[:-1], sample) for sample in inputs[-1]])


def derivative(
    variant: Variant, ways: dict[str, Callable[..., Tensor]], model: nn.Module, batch: int, *others: Tensor
) -> Task:
    """A step that computes a derivative of ``model`` in one of ``ways``, at an input behind the ``others``; with
    ``batched`` at each of ``batch`` inputs.
    """
    way, shape = variant.choice(*ways), [model[0].in_features]
    function = ways[way]
    if variant.choice("one", "batched") == "batched":
        shape = [batch, *shape]
        function = by_samples(function) if way == "loop" else vmap(function, in_dims=(*(None for _ in others), 0))
    return calling(variant, variant(function), *others, torch.randn(*shape), model=model)


@described(
    "the Jacobian of a small net",
    "many few batch",
    tiny=(2048, 32, 4),
    small=(4096, 64, 8),
    full=(8192, 128, 16),
    variants=("loop", "jacrev", "jacfwd"),
    own=("loop", "jacrev", "jacfwd", "wide", "tall", "inputs", "weights", "one", "batched"),
)
def jacobian(variant: Variant, many: int, few: int, batch: int) -> Task:
    """The step: the matrix [few, many], with ``tall`` [many, few]; with ``batched`` one for each sample; with
    ``weights`` the derivative by the last layer's weights instead of the inputs.
    """
    inputs, outputs = (few, many) if variant.choice("wide", "tall") == "tall" else (many, few)
    model = perceptron(inputs, few, 1, outputs, nn.Tanh)
    last = f"{len(model) - 1}.weight"
    argnum = 0 if variant.choice("inputs", "weights") == "weights" else 1

    def output(weights: Tensor, x: Tensor) -> Tensor:
        return functional_call(model, {last: weights}, (x,))

    ways = {
        "loop": by_rows(output, argnum),
        "jacrev": jacrev(output, argnums=argnum),
        "jacfwd": jacfwd(output, argnums=argnum),
    }
    return derivative(variant, ways, model, batch, dict(model.named_parameters())[last].detach())


BATCH = 4


@described(
    "the Hessian of a small net's squared output",
    "inputs width",
    tiny=(32, 96),
    small=(256, 512),
    full=(1024, 1024),
    variants=("loop", "jacfwd_jacrev", "jacrev_jacrev"),
    own=("loop", "jacfwd_jacrev", "jacrev_jacrev", "jacfwd_jacfwd", "one", "batched"),
)
def hessian(variant: Variant, inputs: int, width: int) -> Task:
    """The step: the matrix [inputs, inputs]; with ``batched`` one for each of `BATCH` inputs."""
    model = perceptron(inputs, width, 1, width, nn.Tanh)

    def energy(x: Tensor) -> Tensor:
        return model(x).square().sum()

    ways = {
        "loop": by_rows(grad(energy)),
        "jacfwd_jacrev": jacfwd(jacrev(energy)),
        "jacrev_jacrev": jacrev(jacrev(energy)),
        "jacfwd_jacfwd": jacfwd(jacfwd(energy)),
    }
    return derivative(variant, ways, model, BATCH)


DEEP: dict[str, Any] = {
    "names": "width depth batch",
    "tiny": (256, 4, 32),
    "small": (1024, 6, 128),
    "full": (4096, 8, 512),
}
"""Sizes of a net of several layers."""


@described(
    "a Hessian-vector product of a net's squared output",
    **DEEP,
    variants=("revrev", "fwdrev", "vhp"),
    own=("revrev", "fwdrev", "vhp"),
)
def hvp(variant: Variant, width: int, depth: int, batch: int) -> Task:
    """The step: the Hessian at x times a direction."""
    model = perceptron(width, width, depth, width, nn.Tanh)
    x, direction = torch.randn(batch, width), torch.randn(batch, width)

    def energy(x: Tensor) -> Tensor:
        return model(x).square().sum()

    ways = {
        "revrev": lambda x, direction: vjp(grad(energy), x)[1](direction)[0],
        "fwdrev": lambda x, direction: jvp(grad(energy), (x,), (direction,))[1],
        "vhp": lambda x, direction: functional.vhp(energy, x, direction)[1],  # the Hessian is symmetric
    }
    return calling(variant, variant(ways[variant.choice(*hvp.own)]), x, direction, model=model)


class Tanh(torch.autograd.Function):
    """The hyperbolic tangent with a rule of its own for forward mode."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Tensor → its tanh."""
        ctx.y = torch.tanh(x)
        return ctx.y

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        """The tangent of the result: (1 − tanh²) times that of the argument."""
        return (1 - ctx.y.square()) * tangent

    backward = jvp  # the derivative is symmetric


class OwnTanh(nn.Module):
    """`Tanh` as a module."""

    def forward(self, x: Tensor) -> Tensor:
        """Tensor → its tanh."""
        return Tanh.apply(x)


@described(
    "a directional derivative of a net in forward mode",
    **DEEP,
    variants=("dual", "jvp", "custom"),
    own=("dual", "jvp", "custom", "dual_parameters", "jvp_parameters"),
)
def forward_ad(variant: Variant, width: int, depth: int, batch: int) -> Task:
    """The step: value and derivative of the net, in a direction of its input or of its parameters."""
    way = variant.choice(*forward_ad.own)
    model = perceptron(width, width, depth, width, OwnTanh if way == "custom" else nn.Tanh)
    x, direction = torch.randn(batch, width), torch.randn(batch, width)
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    directions = {name: torch.randn_like(parameter) for name, parameter in parameters.items()}

    def of_parameters(parameters: Any) -> Tensor:
        return functional_call(model, parameters, (x,))

    def dual(x: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        with dual_level():
            return tuple(unpack_dual(model(make_dual(x, direction))))

    def dual_parameters(_: Tensor, __: Tensor) -> tuple[Tensor, Tensor]:
        with dual_level():
            duals = {name: make_dual(parameters[name], directions[name]) for name in parameters}
            return tuple(unpack_dual(of_parameters(duals)))

    ways = {
        "dual": dual,
        "custom": dual,
        "jvp": lambda x, direction: jvp(model, (x,), (direction,)),
        "dual_parameters": dual_parameters,
        "jvp_parameters": lambda *_: jvp(of_parameters, (parameters,), (directions,)),
    }
    return calling(variant, variant(ways[way]), x, direction, model=model)
