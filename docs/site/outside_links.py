"""Links of a page that leave docs/, as in the repository, become links to the repository."""

import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
LINK = re.compile(r"(?<=\]\()(?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?(?=\))")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to files that the site does not have."""
    folder = (Path(config.docs_dir) / page.file.src_uri).parent

    def rewritten(link: re.Match[str]) -> str:
        target = (folder / link["path"]).resolve()
        inside = target.is_relative_to(config.docs_dir)
        if not target.exists() or (inside and files.get_file_from_path(target.relative_to(config.docs_dir).as_posix())):
            return link[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{REPOSITORY}/{kind}/main/{target.relative_to(ROOT).as_posix()}{link['anchor'] or ''}"

    return LINK.sub(rewritten, markdown)
