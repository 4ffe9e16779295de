"""Real files of other formats and devices that tests run against: published by other projects, and not part of this
repository.

They are in the folder that TRACEDIFF_FORMATS names, else in ``../shared/formats`` beside the repository.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FOLDER = Path(os.environ.get("TRACEDIFF_FORMATS") or HERE.parents[1] / "shared" / "formats")

needs_formats = pytest.mark.skipif(not FOLDER.is_dir(), reason="files of other formats: set TRACEDIFF_FORMATS")
