"""The planted commits: what each changes, and whether that changes the work of a step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Planted:
    """One commit on top of a repository's first.

    Attributes:
        repository: its folder. name: of the case. file, old, new: the text that the commit replaces.
        runs: whether a step runs other work, or the same in another time, because of it.
    """

    repository: str
    name: str
    file: str
    old: str
    new: str
    runs: bool = True


def _nothing(repository: str, name: str, file: str, old: str, new: str) -> Planted:
    return Planted(repository, name, file, old, new, runs=False)


PLANTED = (
    # the language model
    Planted("transformer", "wider", "settings.py", "WIDTH = 96", "WIDTH = 128"),
    Planted("transformer", "batch", "settings.py", "BATCH = 8", "BATCH = 12"),
    Planted("transformer", "one-more-layer", "settings.py", "LAYERS = 2", "LAYERS = 3"),
    Planted("transformer", "heads", "settings.py", "HEADS = 4", "HEADS = 8"),
    Planted("transformer", "feed-forward", "layers.py", "factor=4", "factor=6"),
    Planted("transformer", "activation", "layers.py", "functional.gelu(hidden)", "functional.silu(hidden) * hidden"),
    Planted("transformer", "explicit-attention", "layers.py",
            "mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)",
            "mixed = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(-1) @ value"),
    Planted("transformer", "optimizer", "train.py", "torch.optim.AdamW(model", "torch.optim.SGD(model"),
    Planted("transformer", "item", "train.py", "    return loss\n", "    assert loss.item() > 0\n    return loss\n"),
    Planted("transformer", "clip", "train.py", "    optimizer.step()",
            "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()"),
    Planted("transformer", "dtype", "train.py", "    model = Model()", "    model = Model().to(torch.bfloat16)"),
    Planted("transformer", "bias", "model.py", "bias=False", "bias=True"),
    _nothing("transformer", "unused-function", "layers.py", "half = hidden.shape[-1] // 2",
             "half = int(hidden.shape[-1] // 2)"),
    _nothing("transformer", "generate", "model.py", ".argmax(-1, keepdim=True)", ".topk(1, dim=-1).indices"),
    _nothing("transformer", "comment", "layers.py", "        batch, length, width = hidden.shape",
             "        # of the input\n        batch, length, width = hidden.shape"),
    _nothing("transformer", "annotation", "layers.py", "def activation(hidden):",
             "def activation(hidden: torch.Tensor) -> torch.Tensor:"),
    _nothing("transformer", "printed-name", "settings.py", 'NAME = "small"', 'NAME = "tiny"'),
    _nothing("transformer", "rate", "settings.py", "RATE = 1e-3", "RATE = 2e-3"),
    # the convolutional network
    Planted("cnn", "kernel", "network.py", "kernel=3", "kernel=5"),
    Planted("cnn", "widths", "network.py", "widths=(16, 32, 64)", "widths=(16, 48, 64)"),
    Planted("cnn", "pool", "network.py", "nn.MaxPool2d(2)", "nn.AvgPool2d(2)"),
    Planted("cnn", "no-dropout", "network.py", "self.dropout(self.stages(images))", "self.stages(images)"),
    Planted("cnn", "loader-sleep", "images.py", "    images, labels = zip",
            "    __import__('time').sleep(0.03)\n    images, labels = zip"),
    Planted("cnn", "normalised", "images.py", "return (image - 0.5) / 0.25",
            "return (image - image.mean((1, 2), keepdim=True)) / image.std((1, 2), keepdim=True)"),
    Planted("cnn", "side", "images.py", "SIDE = 32", "SIDE = 40"),
    Planted("cnn", "momentum", "train.py", "momentum=0.9", "momentum=0.0"),
    Planted("cnn", "channels-last", "train.py", "    network = Network()",
            "    network = Network().to(memory_format=torch.channels_last)"),
    Planted("cnn", "batch", "train.py", "loader(32)", "loader(48)"),
    _nothing("cnn", "docstring", "network.py", '"""A small convolutional network."""', '"""A network of stages."""'),
    _nothing("cnn", "local-name", "train.py",
             "    loss = functional.cross_entropy(network(images), labels)\n    loss.backward()\n"
             "    optimizer.step()\n    return loss.detach()",
             "    error = functional.cross_entropy(network(images), labels)\n    error.backward()\n"
             "    optimizer.step()\n    return error.detach()"),
    _nothing("cnn", "report", "train.py", 'print(f"loss {loss:.3f}")', 'print(f"the loss is {loss:.4f}")'),
    _nothing("cnn", "no-code", "README.md", "", "Trains a small network.\n"),
    # the compiled perceptron
    Planted("mlp", "activation", "mlp.py", "torch.relu(values)", "torch.tanh(values)"),
    Planted("mlp", "hidden", "mlp.py", "hidden=512", "hidden=768"),
    Planted("mlp", "loss", "mlp.py", "((found - wanted) ** 2).mean()", "(found - wanted).abs().mean()"),
    Planted("mlp", "augmented", "train.py", "return values + 0.01 * torch.randn_like(values)", "return values"),
    Planted("mlp", "eager", "train.py", 'torch.compile(model, mode="default")', "model"),
    Planted("mlp", "rows", "train.py", "ROWS = 128", "ROWS = 256"),
    _nothing("mlp", "parameters", "mlp.py", "parameter.numel()", "int(parameter.numel())"),
    _nothing("mlp", "typed", "train.py", "def augmented(values):", "def augmented(values: torch.Tensor):"),
    # the loop with much data
    Planted("data", "buckets", "features.py", "BUCKETS = 16", "BUCKETS = 64"),
    Planted("data", "no-histogram", "features.py", "torch.cat([normalised(batch), histogram(batch)], dim=1)",
            "torch.cat([normalised(batch), normalised(batch)[:, :16]], dim=1)"),
    Planted("data", "slow-parse", "records.py", "[int(word) for word in line.split(\",\")]",
            "[int(float(word.strip().rjust(200))) for word in (line + \" \" * 2000).split(\",\")]"),
    Planted("data", "padding", "records.py", "length=48", "length=96"),
    Planted("data", "sleep", "loop.py", "    batch = batch_of(number)\n",
            "    __import__(\"time\").sleep(0.01)\n    batch = batch_of(number)\n"),
    Planted("data", "topk", "loop.py", "torch.topk(scores.max(dim=1).values, count).indices",
            "scores.max(dim=1).values.sort(descending=True).indices[:count]"),
    Planted("data", "numpy", "features.py", "    values = batch.float()\n",
            "    values = torch.from_numpy(batch.numpy().astype(\"float32\"))\n"),
    _nothing("data", "summary", "records.py", 'f"{len(rows)} rows"', 'f"rows: {len(rows)}"'),
    _nothing("data", "constant-text", "features.py", '"""Features of a batch."""', '"""What is known of a batch."""'),
    _nothing("data", "test", "test_records.py", "", "from records import parse\n\nassert parse('1,2') == [1, 2]\n"),
    _nothing("data", "blank-lines", "loop.py", "def best(", "\n\n# the largest\n\ndef best("),
)  # fmt: skip
"""A case each."""
