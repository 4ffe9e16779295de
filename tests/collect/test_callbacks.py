"""The callbacks in trainings by the real packages, of tiny models on the CPU; each in a process of its own."""

import subprocess
import sys
import textwrap

import pytest
from collecting import written

from tracediff.aggregate.averages import op_average
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets

pytestmark = [pytest.mark.torch, pytest.mark.frameworks, pytest.mark.slow]

TRANSFORMERS = """
import sys
from pathlib import Path
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from tracediff.collect.transformers import TracediffCallback
out = Path(sys.argv[1])
torch.set_num_threads(1)
config = BertConfig(vocab_size=32, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
data = [{"input_ids": torch.arange(6), "labels": torch.tensor(1)}] * 64

def train(callback, steps, **options):
    arguments = TrainingArguments(
        str(out / "trainer"), max_steps=steps, per_device_train_batch_size=2, use_cpu=True, report_to=[],
        save_strategy="no", disable_tqdm=True, **options,
    )
    trainer = Trainer(BertForSequenceClassification(config), arguments, train_dataset=data, callbacks=[callback])
    trainer.train()
    assert trainer.state.global_step == steps
"""
LIGHTNING = """
import sys
from pathlib import Path
import torch
from lightning.pytorch import LightningModule, Trainer
from tracediff.collect.lightning import TracediffCallback
out = Path(sys.argv[1])
torch.set_num_threads(1)

class Model(LightningModule):
    optimizers_used = 1

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
        self.automatic_optimization = self.optimizers_used == 1

    def training_step(self, batch, number):
        loss = self.layer(batch).square().mean()
        if not self.automatic_optimization:
            for optimizer in self.optimizers():
                optimizer.zero_grad()
                self.manual_backward(loss, retain_graph=True)
                optimizer.step()
        return loss

    def configure_optimizers(self):
        return [torch.optim.SGD(self.parameters(), lr=0.01) for _ in range(self.optimizers_used)]

data = torch.utils.data.DataLoader(torch.ones(256, 8), batch_size=2)

def train(callback, steps, model=None, **options):
    trainer = Trainer(
        accelerator="cpu", max_steps=steps, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=out / "trainer", callbacks=[callback], **options,
    )
    trainer.fit(model or Model(), data)
    assert trainer.global_step == steps
"""
ACCUMULATION = {TRANSFORMERS: "gradient_accumulation_steps", LIGHTNING: "accumulate_grad_batches"}
both = pytest.mark.parametrize("framework", [TRANSFORMERS, LIGHTNING], ids=["transformers", "lightning"])


def training(folder, framework, code):
    """A process that trains; the lines that tracediff wrote to its standard error."""
    command = [sys.executable, "-c", framework + textwrap.dedent(code), str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [line for line in result.stderr.splitlines() if line.startswith("tracediff: ")]


def per_step(traces, kind, name):
    """How often ``name`` is in a step."""
    average = op_average(traces)
    return sum(count for (k, n), (count, *_) in average.rows.items() if k == kind and n.startswith(name)) / (
        average.denominator
    )


@both
def test_a_training_becomes_runs_of_a_set_whose_steps_are_those_of_the_optimizer(tmp_path, framework):
    code = f"""
    for _ in range(2):
        train(TracediffCallback(out / "one", wait=1, warmup=1, active=3), 6)
        train(TracediffCallback(out / "four", wait=0, warmup=1, active=3), 6, {ACCUMULATION[framework]}=4)
    """
    lines = training(tmp_path, framework, code)
    recorded = [line.split(": ")[1].partition(" (disturbed")[0] for line in lines]  # this machine may be busy
    assert (
        recorded
        == [
            "recorded steps 2–4",
            "recorded steps 1–3",
        ]
        * 2
    )
    one, four = load_sets([str(tmp_path / "one"), str(tmp_path / "four")])
    for traces, name, wait in ((one, "one", 1), (four, "four", 0)):
        assert [run.name for run in traces.runs] == ["run 1", "run 2"]
        assert len(traces.steps_used) == 2
        assert [run.run for run in traces.manifest.runs] == [1, 2]
        settings = written(tmp_path / name)["settings"]
        assert (settings["wait"], settings["active"]) == (wait, 3)
        assert per_step(traces, "user_annotation", "Optimizer.step#") == 1
    assert per_step(four, "cpu_op", "aten::addmm") == 4 * per_step(one, "cpu_op", "aten::addmm") > 0
    comparison = compare_sets(one, four)
    assert comparison.step_time.residual == 0
    assert comparison.verdict.n_control == comparison.verdict.n_test == 2


@both
def test_what_goes_wrong_is_a_line_and_the_training_goes_on(tmp_path, framework):
    (tmp_path / "file").write_text("")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "manifest.json").write_text("[]")
    code = """
    train(TracediffCallback(out / "short", wait=1, warmup=1, active=9), 4)
    train(TracediffCallback(out / "file" / "set"), 4)
    train(TracediffCallback(out / "odd", active=0), 4)
    train(TracediffCallback(out / "foreign", wait=0, warmup=1, active=1), 4)
    train(TracediffCallback(out / "good", wait=0, warmup=1, active=1), 4)
    try:
        TracediffCallback(out, actve=3)
    except TypeError as error:
        assert "actve" in str(error)
    else:
        raise AssertionError("a misspelt option is taken")
    """
    lines = training(tmp_path, framework, code)
    assert len(lines) == 5
    assert "not written, because the loop ended after 4 of 11 steps; run more steps" in lines[0]
    assert "cannot be created" in lines[1]
    assert "warning: " in lines[2]
    assert "not a manifest of this version" in lines[3]
    assert lines[4].startswith("tracediff: recorded steps 1–1")
    assert sorted(path.parent.parent.name for path in tmp_path.rglob("*.gz")) == ["foreign", "good"]


def test_a_batch_in_which_several_optimizers_step_is_a_step(tmp_path):
    code = """
    Model.optimizers_used = 2
    train(TracediffCallback(out / "set", wait=0, warmup=1, active=3), 12)
    """
    assert len(training(tmp_path, LIGHTNING, code)) == 1
    (traces,) = load_sets([str(tmp_path / "set")])
    assert per_step(traces, "user_annotation", "Optimizer.step#") == 2


def test_a_training_that_fails_ends_the_recording(tmp_path):
    code = """
    class Failing(Model):
        def training_step(self, batch, number):
            assert number < 3, "as planned"
            return super().training_step(batch, number)

    try:
        train(TracediffCallback(out / "set", wait=0, warmup=1, active=9), 12, Failing())
    except AssertionError as error:
        assert str(error) == "as planned"
    train(TracediffCallback(out / "set", wait=0, warmup=1, active=3), 6)
    """
    lines = training(tmp_path, LIGHTNING, code)
    assert ["after 3 of 10 steps" in lines[0], "recorded steps 1–3" in lines[1]] == [True, True]


def test_the_older_package_of_lightning_alone_is_enough(tmp_path):
    older = "sys.modules['lightning'] = None\n" + LIGHTNING.replace("from lightning.pytorch", "from pytorch_lightning")
    code = """
    import pytorch_lightning
    assert issubclass(TracediffCallback, pytorch_lightning.Callback)
    train(TracediffCallback(out / "set", wait=0, warmup=1, active=3), 6)
    """
    lines = training(tmp_path, f"import sys\n{older}", code)
    assert lines[0].startswith("tracediff: recorded steps 1–3")
