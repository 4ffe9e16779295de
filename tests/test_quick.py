"""The tests of `make quick` need no torch."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WITHOUT_TORCH = """
import sys
from importlib.machinery import PathFinder
import pytest

class WithoutTorch(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutTorch
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_they_are_collected_without_torch():
    selection = re.search(r'^QUICK := -m "(.+)"$', (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    options = ["-n", "0", "-p", "no:cacheprovider", "--collect-only", "-q", "-m", selection, "tests"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "tests/cli/test_compare.py: " in done.stdout
    assert "tests/collect/test_gpu.py" not in done.stdout
