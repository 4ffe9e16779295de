"""What commands of a page print: run by the build in a folder with sample_traces/, and examples/ of the concepts.

A block that begins with ```` ```console run ```` has lines `$ COMMAND`, each followed by its output at 80 columns. The
output is in the page, so that it can be read in the repository, too. A build in which a command prints something else,
or fails, fails; `make outputs` writes the pages anew, and the drawings and the glossary.
"""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from drawings import write_drawings
from examples import write_traces
from glossary import glossary

ROOT = Path(__file__).parents[2]
README, DOCS = ROOT / "README.md", ROOT / "docs"
BLOCK = re.compile(r"^```console run\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"^```console run$", re.MULTILINE)
log = logging.getLogger("mkdocs.hooks.outputs")


def on_pre_build(**_: object) -> None:
    """Compare the outputs of the README, which is not a page, with what its commands print now."""
    _compare(README.name, README.read_text())


def on_page_markdown(markdown: str, page, **_: object) -> str:
    """Compare the outputs of a page with what its commands print now."""
    _compare(page.file.src_uri, markdown)
    return MARKER.sub("```console", markdown)


def _compare(name: str, markdown: str) -> None:
    if with_outputs(markdown) != markdown:
        log.warning("%s: its commands print something else now; run make outputs", name)


def with_outputs(markdown: str) -> str:
    """The page with what its commands print.

    Raises:
        RuntimeError: a command fails.
    """
    if not BLOCK.search(markdown):
        return markdown
    with TemporaryDirectory() as folder:
        (Path(folder) / "sample_traces").symlink_to(ROOT / "sample_traces")
        write_traces(Path(folder) / "examples")
        return BLOCK.sub(lambda block: _run(block["text"], folder), markdown)


def _run(text: str, folder: str) -> str:
    commands = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    printed = "\n".join(f"$ {command}\n{_printed(command, folder)}" for command in commands)
    return f"```console run\n{printed.strip()}\n```"


def _printed(command: str, folder: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"exit code {ran.returncode} of {command}\n{ran.stdout}")
    return "\n".join(line.rstrip() for line in ran.stdout.splitlines()) + "\n"


if __name__ == "__main__":
    write_drawings()
    (DOCS / "glossary.md").write_text(glossary())
    for page in [README, *sorted(DOCS.rglob("*.md"))]:
        before = page.read_text()
        if (after := with_outputs(before)) != before:
            page.write_text(after)
            print(f"{page.relative_to(ROOT)}: written")
