"""Records further pairs on a GPU that differ by one known change: other steps than planted.py's, and other causes.

python benchmarks/gpu/planted_more.py OUT [--device cpu] [--only NAME …] writes what planted.py writes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from planted import Pair, Step, record
from torch import nn
from torch.nn import functional as F

REHEARSED = {"width": 64, "layers": 2, "tokens": 32, "batch": 2, "words": 500, "size": 32}
LARGE = {"width": 1024, "layers": 4, "tokens": 512, "batch": 16, "words": 32768}


class RMSNorm(nn.Module):
    """A norm of elementwise operators."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x, scaled; of its shape."""
        return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype) * self.weight


class Layer(nn.Module):
    """A residual perceptron."""

    def __init__(self, width: int, norm: type[nn.Module], activation: Step) -> None:
        super().__init__()
        self.norm, self.activation = norm(width), activation
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's output, of x's shape."""
        return x + self.down(self.activation(self.up(self.norm(x))))


class Language(nn.Module):
    """Words in, a distribution over words out."""

    def __init__(self, width: int, layers: int, words: int, norm: type[nn.Module], activation: Step) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, norm, activation) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Scores of each next word."""
        x = self.embed(words)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def written_gelu(x: torch.Tensor) -> torch.Tensor:
    """GELU in five operators."""
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def train(
    *,
    device: str,
    width: int,
    layers: int,
    tokens: int,
    batch: int,
    words: int,
    norm: type[nn.Module] = nn.LayerNorm,
    activation: Step = F.gelu,
    compiled: bool = False,
    scaled: bool = False,
    zeroed: bool = False,
    deterministic: bool = False,
    watched: bool = False,
    averaged: bool = False,
    hooked: bool = False,
    full_loss: bool = False,
    padded: int = 0,
    shared: Callable[[], AbstractContextManager[None]] = nullcontext,
    returned: bool = False,
    **_: object,
) -> Step:
    """A training step of a language model in bf16."""
    torch.manual_seed(0)
    model = Language(width, layers, words, norm, activation).to(device)
    averages = [p.detach().clone() for p in model.parameters()] if averaged else []
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler(device) if scaled else None
    norms: list[float] = []
    if hooked:
        for layer in model.layers:
            layer.register_forward_hook(lambda _module, _given, x: norms.append(float(x.detach().norm())))
    run = torch.compile(model) if compiled else model
    given = torch.randint(words, (batch, tokens + padded), device=device)

    def step() -> None:
        torch.use_deterministic_algorithms(deterministic, warn_only=True)
        optimizer.zero_grad(set_to_none=not zeroed)
        with torch.autograd.set_detect_anomaly(watched), shared():
            with torch.autocast(device, torch.float16 if scaled and device == "cuda" else torch.bfloat16):
                scores = run(given)
            scores = scores.float() if full_loss else scores
            loss = F.cross_entropy(scores.flatten(0, 1), given.flatten())
            if scaler:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            else:
                loss.backward()
                optimizer.step()
        if averages:
            torch._foreach_lerp_(averages, [p.detach() for p in model.parameters()], 0.001)
        if returned:
            scores.detach().argmax(-1).cpu()

    return step


def decode(
    *,
    device: str,
    width: int,
    layers: int,
    tokens: int,
    batch: int,
    words: int,
    grown: bool = False,
    graded: bool = False,
    sampled: bool = False,
    **_: object,
) -> Step:
    """Eight words, one at a time, from a model that keeps keys and values."""
    torch.manual_seed(0)
    dtype = torch.bfloat16
    embed = nn.Embedding(words, width).to(device, dtype)
    blocks = nn.ModuleList(nn.ModuleList(nn.Linear(width, n * width) for n in (3, 1)) for _ in range(layers)).to(
        device, dtype
    )
    head = nn.Linear(width, words).to(device, dtype)
    shape = (2, batch, 8, tokens, width // 8)
    kept = [torch.zeros(shape, device=device, dtype=dtype) for _ in range(layers)]

    def step() -> None:
        caches = list(kept)
        word = torch.zeros(batch, 1, dtype=torch.long, device=device)
        for place in range(8):
            x = embed(word)
            for n, (qkv, out) in enumerate(blocks):
                query, *new = (part.unflatten(-1, (8, -1)).transpose(1, 2) for part in qkv(x).chunk(3, -1))
                if grown:
                    caches[n] = torch.cat([caches[n], torch.stack(new)], 3)
                else:
                    caches[n][:, :, :, place] = torch.stack(new)[:, :, :, 0].detach()
                x = x + out(F.scaled_dot_product_attention(query, *caches[n]).transpose(1, 2).flatten(2))
            scores = head(x)[:, -1]
            word = torch.multinomial(scores.float().softmax(-1), 1) if sampled else scores.argmax(-1, keepdim=True)

    return step if graded else torch.no_grad()(step)


def convolve(
    *,
    device: str,
    batch: int,
    size: int,
    channels: int = 64,
    last: bool = False,
    tuned: bool = False,
    **_: object,
) -> Step:
    """A training step of a convolutional network in bf16."""
    torch.manual_seed(0)
    blocks = [
        nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())
        for _ in range(8)
    ]
    model = nn.Sequential(nn.Conv2d(3, channels, 7, 2, 3), *blocks).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    order = torch.channels_last if last else torch.contiguous_format
    model, images = (
        model.to(memory_format=order),
        torch.randn(batch, 3, size, size, device=device).to(memory_format=order),
    )

    def step() -> None:
        torch.backends.cudnn.benchmark = tuned
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = model(images).float().square().mean()
        loss.backward()
        optimizer.step()

    return step


@contextmanager
def beside_gpu_work() -> Iterator[None]:
    """Another stream multiplies matrices all the time, as another program on the same GPU would."""
    x = torch.randn(4096, 4096, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(4):
            x @ x
    yield


@contextmanager
def beside_python() -> Iterator[None]:
    """Another thread of Python holds the interpreter's lock half of the time."""
    ended = threading.Event()

    def count() -> None:
        n = 0
        while not ended.is_set():
            n += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


IMAGES = {"batch": 64, "size": 128}
SHORT = {**LARGE, "tokens": 64, "batch": 4, "layers": 8, "width": 512}
ONE_BY_ONE = {"width": 2048, "layers": 8, "tokens": 1024, "batch": 8, "words": 32000}

PAIRS = {
    "compiled": Pair("torch.compile fuses elementwise operators and norms", LARGE, {}, {"compiled": True}, train),
    "scaled": Pair(
        "a gradient scaler: fp16, gradients unscaled, the host waits for found_inf",
        LARGE,
        {},
        {"scaled": True},
        train,
        True,
    ),
    "zeroed": Pair("gradients are filled with zeros and added to", LARGE, {}, {"zeroed": True}, train),
    "rmsnorm": Pair("layer norm becomes an RMS norm of elementwise operators", LARGE, {}, {"norm": RMSNorm}, train),
    "written_gelu": Pair(
        "one gelu kernel becomes many elementwise ones", LARGE, {}, {"activation": written_gelu}, train
    ),
    "words": Pair("one word more: GEMMs of the head are unaligned", LARGE, {}, {"words": 32769}, train),
    "deterministic": Pair("the embedding's gradient is deterministic", LARGE, {}, {"deterministic": True}, train),
    "watched": Pair("anomaly detection: checks for NaN, and stacks on the host", SHORT, {}, {"watched": True}, train),
    "averaged": Pair("a moving average of the weights", LARGE, {}, {"averaged": True}, train),
    "hooked": Pair("hooks read a norm on the host in every layer", SHORT, {}, {"hooked": True}, train),
    "full_loss": Pair("the loss is of float scores", LARGE, {}, {"full_loss": True}, train),
    "padded": Pair("a quarter more tokens", LARGE, {}, {"padded": 128}, train),
    "shared_gpu": Pair(
        "other work of another stream shares the GPU", LARGE, {}, {"shared": beside_gpu_work}, train, True
    ),
    "shared_python": Pair("another thread holds Python's lock", SHORT, {}, {"shared": beside_python}, train),
    "returned": Pair("predictions are copied to the host in every step", LARGE, {}, {"returned": True}, train),
    "grown": Pair("the cache is concatenated for each word", ONE_BY_ONE, {}, {"grown": True}, decode),
    "graded": Pair("decoding without no_grad", ONE_BY_ONE, {}, {"graded": True}, decode),
    "sampled": Pair("words are sampled", ONE_BY_ONE, {}, {"sampled": True}, decode),
    "channels_last": Pair("convolutions in channels_last: no layout conversions", IMAGES, {}, {"last": True}, convolve),
    "tuned": Pair("cuDNN chooses convolutions by benchmark", IMAGES, {}, {"tuned": True}, convolve, True),
    "wider": Pair("twice the channels", IMAGES, {}, {"channels": 128}, convolve),
}

if __name__ == "__main__":
    record(PAIRS, REHEARSED)
