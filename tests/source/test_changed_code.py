"""Changed lines that changed work runs for, in a repository of two commits and traces of them with known answers."""

import subprocess
from pathlib import Path

import pytest
from build_trace import annotation, call, document, kernel, op, python, step, write
from click.testing import CliRunner
from tracediff_cli.group import cli

from tracediff.engine import load_sets
from tracediff.errors import TracediffError
from tracediff.explain.compare import compare_sets
from tracediff.present.answer import changed_code_sentence
from tracediff.source.changed_code import with_changed_code

SETTINGS = "WIDTH = 64\nNAME = 'a'\n"
MODEL = '''"""A model."""
from settings import WIDTH


class Model:
    def __init__(self):
        self.width = WIDTH

    def forward(self, x):
        return layer(x, self.width)

    def extra(self):
        return 1


def layer(x, width):
    return x @ x


def unused(x):
    return x
'''
TRAIN = """import model
from settings import NAME


def train_step(net, x):
    return net.forward(x)


def main():
    print(NAME)
    train_step(model.Model(), 1)


main()
"""
FILES = {"settings.py": SETTINGS, "model.py": MODEL, "train.py": TRAIN, "README.md": "A model.\n"}


class Code:
    """A repository of two commits."""

    def __init__(self, folder: Path, files: dict[str, str], edits: dict[str, str | None]):
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.texts = [files, {path: text for path, text in {**files, **edits}.items() if text is not None}]
        for texts in self.texts:
            for path in [p for p in folder.iterdir() if p.is_file()]:
                path.unlink()
            for path, text in texts.items():
                (folder / path).write_text(text)
            self.git("add", "-A")
            self.git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "x")
        self.commits = tuple(self.git("rev-list", "--reverse", "HEAD").split())

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def frame(self, side: int, path: str, start: str) -> str:
        """The frame of the function that begins so."""
        lines = self.texts[side][path].splitlines()
        number = next(i for i, line in enumerate(lines, 1) if line.strip().startswith(start))
        return f"/anywhere/{path}({number}): {start.removeprefix('def ').split('(')[0]}"


def side_of(folder: Path, code: Code, side: int, *, shape: int = 64, took: int = 50, runs: int = 5) -> str:
    """A set in which a train step calls forward, and that a layer, which launches a product of this shape."""
    for run in range(runs):
        noise = run / 10
        events = [
            step(1, 0, 90),
            python(code.frame(side, "train.py", "def train_step("), 0, 80, 1),
            python(code.frame(side, "model.py", "def forward("), 1, 70, 2, parent=1),
            op("aten::add", 3, 2, **{"Input Dims": [[8]]}),
            python(code.frame(side, "model.py", "def layer("), 10, 50, 3, parent=2),
            op("aten::mm", 12, 20, **{"Input Dims": [[shape, shape], [shape, shape]]}),
            call("cudaLaunchKernel", 14, 2, 1),
            kernel("gemm", 100, took + noise, 1),
        ]
        write(folder / f"run{run}" / "rank0.json", document(events))
    return str(folder)


def explained(tmp_path: Path, edits: dict[str, str | None], files: dict[str, str] = FILES, **test):
    (tmp_path / "code").mkdir()
    code = Code(tmp_path / "code", files, edits)
    control, changed = side_of(tmp_path / "a", code, 0), side_of(tmp_path / "b", code, 1, **test)
    found = with_changed_code(compare_sets(*load_sets([control, changed])), code.folder, code.commits)
    return found.changed_code, changed_code_sentence(found)


def test_the_function_that_launches_the_changed_work(tmp_path):
    code, sentence = explained(tmp_path, {"model.py": MODEL.replace("x @ x", "x @ x @ x")}, shape=128, took=90)
    (place,) = code.touching
    assert (place.file, place.name, place.first, place.last, place.lines) == ("model.py", "layer", 17, 17, 1)
    assert (place.distance, place.part) == (0, 1.0)
    assert sentence.startswith("changed code: model.py:17 in layer (1 line changed in ")
    assert sentence.endswith("holds 100 % of the changed work")


def test_a_changed_constant_explains_the_work_of_another_shape(tmp_path):
    code, _ = explained(tmp_path, {"settings.py": SETTINGS.replace("64", "128")}, shape=128, took=90)
    (place,) = code.touching
    assert (place.file, place.name, place.first) == ("settings.py", "WIDTH", 1)
    assert place.distance > 0


def test_the_nearest_of_two_changed_definitions(tmp_path):
    edits = {"settings.py": SETTINGS.replace("64", "128"), "model.py": MODEL.replace("x @ x", "x @ x @ x")}
    code, _ = explained(tmp_path, edits, shape=128, took=90)
    assert code.touching[0].name == "layer"


def test_lines_move_and_files_are_renamed(tmp_path):
    renamed = {
        "model.py": None,
        "network.py": "\n\n\n" + MODEL,
        "train.py": TRAIN.replace("import model", "import network as model"),
    }
    (tmp_path / "code").mkdir()
    code = Code(tmp_path / "code", FILES, renamed)
    control = side_of(tmp_path / "a", code, 0)
    code.texts[1]["model.py"] = code.texts[1]["network.py"]
    test = side_of(tmp_path / "b", code, 1, took=90)
    for path in Path(test).glob("run*/*.json"):
        path.write_text(path.read_text().replace("/anywhere/model.py", "/anywhere/network.py"))
    found = with_changed_code(compare_sets(*load_sets([control, test])), code.folder, code.commits).changed_code
    assert found.touching == ()
    assert found.changed_work > 0.5


@pytest.mark.parametrize(
    "edits",
    [
        {"model.py": MODEL.replace("def unused(x):\n    return x", "def unused(x):\n    return x @ x")},
        {"model.py": MODEL.replace("    return x @ x", "    # a product\n    return x @ x")},
        {"model.py": MODEL.replace('"""A model."""', '"""Another text."""')},
        {"model.py": MODEL.replace("layer(x, width):\n    return x @ x", "layer(y: int, z) -> int:\n    return y @ y")},
        {"model.py": MODEL.replace("return 1", "return 2")},
        {"README.md": "Other words.\n"},
        {"test_model.py": "import model\n\nassert model.layer(2, 1)\n"},
    ],
    ids=["unused", "comment", "docstring", "names", "method", "text", "tests"],
)  # fmt: skip
def test_no_changed_line_touches_work_that_another_shape_changed(tmp_path, edits):
    code, sentence = explained(tmp_path, edits, shape=128, took=90)
    assert code.touching == ()
    assert sentence.startswith("no changed line touches the changed work")


def test_the_same_work_in_another_time_is_not_laid_on_code_far_from_it(tmp_path):
    code, sentence = explained(tmp_path, {"settings.py": SETTINGS.replace("64", "65")}, took=90)
    assert code.touching == ()
    assert "no changed line touches the changed work (1 changed definition)" in sentence
    assert "nothing else that was recorded differs" in sentence


def test_a_setting_of_torch_explains_other_times_of_the_same_work(tmp_path):
    edits = {"train.py": TRAIN.replace("    print(NAME)", "    torch.set_num_threads(1)\n    print(NAME)")}
    code, _ = explained(tmp_path, edits, took=90)
    assert [place.name for place in code.touching] == ["main"]


def test_nothing_changed(tmp_path):
    code, sentence = explained(tmp_path, {"model.py": MODEL.replace("x @ x", "x @ x @ x")})
    assert (code.touching, code.changed_work) == ((), 0)
    assert sentence.startswith("no changed line touches changed work: none is tested to have changed")


def test_frames_that_the_commits_do_not_have_are_of_no_line(tmp_path):
    files = {**FILES, "other": MODEL}
    (tmp_path / "code").mkdir()
    code = Code(tmp_path / "code", files, {"model.py": MODEL.replace("x @ x", "x @ x @ x")})
    paths = [side_of(tmp_path / name, code, side, took=50 + 40 * side) for side, name in enumerate("ab")]
    for folder in paths:
        for path in Path(folder).glob("run*/*.json"):
            path.write_text(path.read_text().replace(".py(", ".py(9"))
    found = with_changed_code(compare_sets(*load_sets(paths)), code.folder, code.commits).changed_code
    assert (found.touching, found.unplaced) == ((), 1.0)


def test_without_lines_the_changed_code_is_unknown(tmp_path):
    (tmp_path / "code").mkdir()
    code = Code(tmp_path / "code", FILES, {"model.py": MODEL.replace("x @ x", "x @ x @ x")})
    for side, took in (("a", 50), ("b", 90)):
        write(tmp_path / side / "rank0.json", document([step(1, 0, 100), op("aten::mm", 12, took)]))
    sides = load_sets([str(tmp_path / side) for side in "ab"])
    sentence = changed_code_sentence(with_changed_code(compare_sets(*sides), code.folder, code.commits))
    assert sentence.startswith("changed lines: unknown, no line of code was recorded: record with_stack=True")


def test_one_file_name_twice_is_told_apart_by_its_functions_or_not_at_all(tmp_path):
    edits = {"model.py": MODEL.replace("x @ x", "x @ x @ x")}
    code, _ = explained(tmp_path, edits, {**FILES, "copy_of_model.py": MODEL}, took=90)
    assert [place.file for place in code.touching] == ["model.py"]


def test_code_that_cannot_be_parsed(tmp_path):
    code, _ = explained(tmp_path, {"settings.py": "WIDTH = = 64\n"}, took=90)
    assert code.touching == ()


def commit_options(commits):
    return [
        word for side, name in zip(("ctrl", "test"), commits, strict=False) for word in ("--commit", f"{side}={name}")
    ]


def test_the_command(tmp_path):
    (tmp_path / "code").mkdir()
    code = Code(tmp_path / "code", FILES, {"model.py": MODEL.replace("x @ x", "x @ x @ x")})
    paths = [
        side_of(tmp_path / name, code, side, shape=64 * (1 + side), took=50 + 40 * side)
        for side, name in enumerate("ab")
    ]
    run = CliRunner(env={"COLUMNS": "160"})
    given = ["compare", *paths, "--source", str(code.folder)]
    printed = run.invoke(cli, [*given, *commit_options(code.commits)])
    assert printed.exit_code == 0
    assert "model.py:17 in layer (1 line changed in " in printed.output
    for commits, words in (
        ((), "do not say which commit"),
        (("main", "no-such-commit"), "is not a commit of the repository"),
    ):
        failed = run.invoke(cli, [*given, *commit_options(commits)], standalone_mode=False)
        assert isinstance(failed.exception, TracediffError)
        assert words in str(failed.exception)
    alone = run.invoke(cli, ["compare", *paths, *commit_options(code.commits)])
    assert alone.exit_code == 2
    assert "--commit needs --source" in alone.output
    half = run.invoke(cli, [*given, "--commit", f"ctrl={code.commits[0]}"])
    assert half.exit_code == 2
    assert "--commit needs both sides" in half.output


IMAGES = """from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __getitem__(self, index):
        return normalised(index)


def normalised(image):
    return image - 1


def loader():
    return DataLoader(Images(), 4)
"""
LOOP = """from images import loader


def report(x):
    print(x)


def main():
    for x in loader():
        report(x)


main()
"""


def loading_side(folder: Path, code: Code, side: int, took: int) -> str:
    for run in range(5):
        events = [
            step(1, 0, 1000 + took),
            python(code.frame(side, "loop.py", "def main("), 0, 990 + took, 1),
            annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 5, took + run / 10),
            python(code.frame(side, "images.py", "def normalised("), 6, took - 2, 2, parent=1),
            op("aten::mm", took + 20, 20),
            call("cudaLaunchKernel", took + 22, 2, 1),
            kernel("gemm", took + 50, 50, 1),
        ]
        write(folder / f"run{run}" / "rank0.json", document(events))
    return str(folder)


@pytest.mark.parametrize(
    ("file", "old", "new", "names"),
    [
        ("images.py", "image - 1", "image - 2", ["normalised"]),
        ("images.py", "DataLoader(Images(), 4)", "DataLoader(Images(), 8)", ["loader"]),
        ("loop.py", "print(x)", "print(x, x)", []),
    ],
)
def test_time_in_which_data_is_loaded_is_of_what_the_loader_is_given(tmp_path, file, old, new, names):
    files = {"images.py": IMAGES, "loop.py": LOOP}
    (tmp_path / "code").mkdir()
    code = Code(tmp_path / "code", files, {file: files[file].replace(old, new)})
    paths = [loading_side(tmp_path / name, code, side, 300 + 300 * side) for side, name in enumerate("ab")]
    found = with_changed_code(compare_sets(*load_sets(paths)), code.folder, code.commits).changed_code
    assert [place.name for place in found.touching] == names
    assert found.changed_work > 0.9
