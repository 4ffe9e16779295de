"""The tables of thresholds and bounds, generated from the registers."""

from mkdocs.structure.pages import Page

from tracediff import bounds, thresholds

PAGE = "reference/thresholds.md"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str | None:
    """Add the tables to their page."""
    return "\n".join([markdown, *_rows()]) if page.file.src_uri == PAGE else None


def _rows() -> list[str]:
    rows = ["| name | value | unit | what it decides | case |", "|---|--:|---|---|---|"]
    rows += [
        f"| {name} | {t.value:g} | {t.unit} | {t.why} | {t.case} |"
        for name, t in thresholds.decides.table(thresholds).items()
    ]
    rows += ["", "## Bounds", "", "| name | value | unit | of what |", "|---|--:|---|---|"]
    rows += [f"| {name} | {b.value:,} | {b.unit} | {b.why} |" for name, b in bounds.bound.table(bounds).items()]
    return rows
