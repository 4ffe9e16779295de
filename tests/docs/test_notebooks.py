"""The notebooks run, and are stored without outputs."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def read(path):
    return pytest.importorskip("nbformat").read(path, as_version=4)


def cells(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs(path):
    assert [cell.source for cell in cells(path) if cell.outputs or cell.execution_count] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path):
    notebook, nbclient = read(path), pytest.importorskip("nbclient")
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert len(shown) >= len(cells(path)) - 1
