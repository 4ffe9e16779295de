"""Transformers: training of vision transformers, one of them with an expensive loss; BERT; inference of sequences whose
length changes every step.
"""

from functools import partial
from itertools import cycle, repeat
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax, mse_loss, scaled_dot_product_attention, softmax

from tracediff.collect.variant import Task, Variant
from tracediff.collect.workloads.harness import (
    IndexedSamples,
    calling,
    classification,
    described,
    inference,
    loaded,
    moved,
    training,
)
from tracediff.errors import TracediffError


class Attention(nn.Module):
    """Multi-head self-attention through scaled_dot_product_attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, tokens, width] → the same shape."""
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(q, k, v)
        return self.proj(attended.transpose(1, 2).reshape(batch, tokens, width))


class Mlp(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [..., width] → the same shape."""
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    """Attention and MLP, each behind a layer norm and with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, tokens, width] → the same shape."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    """A vision transformer with mean pooling."""

    def __init__(self, image: int, patch: int, width: int, depth: int, heads: int, classes: int = 1000) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.position = nn.Parameter(torch.randn(1, (image // patch) ** 2, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Images [batch, 3, h, w] → logits [batch, classes]."""
        x = self.patches(images).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


def fake_image(image: int, batch: int, index: int) -> tuple[Tensor, int]:
    """A random image [3, h, w], always the same at an index of a batch, and its label."""
    generator = torch.Generator().manual_seed(index % batch)
    return torch.randn(3, image, image, generator=generator), index % 1000


@described(
    "training step of a vision transformer (cross-entropy, Adam)",
    "image patch width depth heads batch",
    tiny=(64, 8, 192, 3, 3, 8),
    small=(224, 16, 384, 12, 6, 32),
    full=(224, 16, 768, 12, 12, 64),
    variants=("eager", "compile", "eager+amp", "compile+amp"),
    own=("in_memory", "workers0", "workers2"),
)
def vit(variant: Variant, batch: int, **size: Any) -> Task:
    """The training step."""
    model, image, source = Vit(**size), size["image"], variant.choice(*vit.own)
    if source == "in_memory":
        images = torch.randn(batch, 3, image, image)
        batches = moved(repeat((images, torch.randint(0, 1000, (batch,)))))
    else:
        samples = IndexedSamples(batch, partial(fake_image, image, batch))
        batches = loaded(samples, batch, workers=int(source.removeprefix("workers")))
    example = torch.randn(batch, 3, image, image)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return classification(variant, model, optimizer, batches, example)


TEMPERATURES = (1.0, 2.0, 4.0, 8.0)


def distillation(student: Tensor, teacher: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy, and a focal Jensen–Shannon divergence from the centred, sharpened teacher at each temperature."""
    loss = cross_entropy(student, labels)
    centred = teacher - teacher.mean(0, keepdim=True)
    for temperature in TEMPERATURES:
        log_q = log_softmax(student / temperature, -1)
        p, q = softmax(centred / (0.5 * temperature), -1), log_q.exp()
        log_middle = (0.5 * (p + q)).clamp_min(1e-9).log()
        divergence = 0.5 * (p * (p.clamp_min(1e-9).log() - log_middle) + q * (log_q - log_middle))
        focus = (p - q).abs().sqrt().detach()
        loss = loss + temperature**2 * (divergence * (1 + focus)).sum(-1).mean()
    return loss


class Expert(nn.Module):
    """A loss: the mean square distance of the student's logits to those of a larger transformer.

    Args:
        blocks: depth of that transformer, whose other sizes are the student's.
    """

    def __init__(self, blocks: int, **size: Any) -> None:
        super().__init__()
        self.expert = Vit(**{**size, "depth": blocks}).eval().requires_grad_(False)

    def forward(self, student: Tensor, images: Tensor, _: Tensor) -> Tensor:
        """Logits and the images that they are for → the loss."""
        return mse_loss(student, self.expert(images))


class WithLoss(nn.Module):
    """A model and its loss as one module.

    Args:
        loss: of the model's logits, what they are compared with, and labels.
    """

    def __init__(self, model: Any, loss: Any) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, images: Tensor, reference: Tensor, labels: Tensor) -> Tensor:
        """Images, what the loss refers to, and labels → the loss."""
        return self.loss(self.model(images), reference, labels)


@described(
    "training step of a vision transformer with an expensive loss: distillation, or a larger expert (Adam)",
    "image patch width depth heads classes batch expert",
    tiny=(32, 8, 96, 2, 3, 4096, 8, 6),
    small=(224, 16, 384, 12, 6, 21841, 32, 24),
    full=(224, 16, 768, 12, 12, 21841, 64, 24),
    variants=("eager", "compile+loss_eager", "compile+loss_compiled", "compile+one_graph"),
    own=("loss_eager", "loss_compiled", "one_graph", "distilled", "expert"),
)
def vit_distill(variant: Variant, batch: int, expert: int, **size: Any) -> Task:
    """The training step; ``compile`` compiles the model, ``loss_compiled`` also the loss, ``one_graph`` both as one."""
    compiled_part = variant.choice("loss_eager", "loss_compiled", "one_graph")
    if compiled_part == "loss_compiled" and not variant.compiles:
        raise TracediffError(f"--variant {variant.text}", "loss_compiled needs compile", "write compile+loss_compiled")
    model = Vit(**size)
    images = torch.randn(batch, 3, size["image"], size["image"])
    reference = 4 * torch.randn(batch, size["classes"])
    labels = torch.randint(0, size["classes"], (batch,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    loss: Any = distillation
    if variant.choice("distilled", "expert") == "expert":
        loss, reference = Expert(expert, **size), images
    if compiled_part == "one_graph":
        forward = variant(WithLoss(model, loss), images, reference, labels)
    else:
        logits = variant(model, images)
        loss = variant(loss) if compiled_part == "loss_compiled" else loss

        def forward(images: Tensor, reference: Tensor, labels: Tensor) -> Tensor:
            return loss(logits(images), reference, labels)

    return training(variant, model, optimizer, forward, repeat((images, reference, labels)), batch)


MASK, IGNORED = 103, -100
SENTENCE = 12
"""Tokens of the short sentence."""


class BertLayer(nn.Module):
    """Attention and MLP, each with dropout, a residual and a layer norm behind it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attn, self.norm1 = Attention(width, heads), nn.LayerNorm(width, eps=1e-12)
        self.mlp, self.norm2 = Mlp(width), nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, tokens, width] → the same shape."""
        x = self.norm1(x + self.dropout(self.attn(x)))
        return self.norm2(x + self.dropout(self.mlp(x)))


class Bert(nn.Module):
    """BERT's encoder with its masked-token head, which shares the token embedding."""

    def __init__(self, vocabulary: int, width: int, depth: int, heads: int, tokens: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.segments = nn.Embedding(2, width)
        self.norm, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(dropout)
        self.layers = nn.Sequential(*(BertLayer(width, heads, dropout) for _ in range(depth)))
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width, eps=1e-12))
        self.decoder = nn.Linear(width, vocabulary)
        for embedding in (self.words, self.positions, self.segments):
            nn.init.normal_(embedding.weight, std=0.02)
        self.decoder.weight = self.words.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids [batch, tokens] → logits [batch, tokens, vocabulary]."""
        x = self.words(ids) + self.positions.weight[: ids.shape[1]] + self.segments.weight[0]
        return self.decoder(self.transform(self.layers(self.dropout(self.norm(x)))))


@described(
    "training step of BERT as a masked language model (AdamW), or inference of a short sentence",
    "vocabulary width depth heads tokens batch",
    tiny=(1000, 64, 2, 2, 32, 4),
    small=(30522, 256, 4, 4, 128, 8),
    full=(30522, 768, 12, 12, 512, 16),
    variants=("eager", "compile", "eager+amp", "compile+amp"),
    own=("training", "inference"),
)
def bert(variant: Variant, batch: int, **size: Any) -> Task:
    """The step."""
    model, vocabulary = Bert(**size), size["vocabulary"]
    if variant.choice(*bert.own) == "inference":
        ids = torch.randint(0, vocabulary, (1, SENTENCE))
        return inference(variant, model.eval(), ids, items=1)
    ids = torch.randint(0, vocabulary, (batch, size["tokens"]))
    masked = torch.rand(ids.shape) < 0.15
    labels, ids = ids.masked_fill(~masked, IGNORED), ids.masked_fill(masked, MASK)
    forward = variant(model, ids)

    def loss(ids: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(forward(ids).flatten(0, 1), labels.flatten(), ignore_index=IGNORED)

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return training(variant, model, optimizer, loss, repeat((ids, labels)), batch)


FRACTIONS = (1.0, 0.5, 0.75, 0.875)
"""Sequence lengths as fractions of the longest; any four consecutive steps use each once."""


class Encoder(nn.Module):
    """Transformer blocks and a prediction of the input."""

    def __init__(self, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tensor [batch, tokens, width] → the same shape."""
        return self.head(self.norm(self.blocks(x)))


@described(
    "inference of a transformer; the sequence length changes every step, in a cycle of four",
    "width depth heads batch longest",
    tiny=(96, 2, 3, 8, 64),
    small=(384, 6, 6, 16, 256),
    full=(768, 12, 12, 32, 512),
    variants=("eager", "compile", "compile:dynamic", "compile:dynamic=false"),
)
def dynamic_shapes(variant: Variant, width: int, depth: int, heads: int, batch: int, longest: int) -> Task:
    """The inference step."""
    model = Encoder(width, depth, heads).eval()
    sequences = [torch.randn(batch, int(fraction * longest), width) for fraction in FRACTIONS]
    forward, batches = variant(model, sequences[0]), cycle(sequences)
    return calling(variant, lambda: forward(next(batches)), model=model, gradients=False)
