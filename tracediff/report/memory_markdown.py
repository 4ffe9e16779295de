"""Memory snapshots → Markdown."""

from __future__ import annotations

from tracediff.present.memory import MemoryText
from tracediff.report.escape import escaped
from tracediff.report.table_markdown import to_markdown as table_lines


def to_markdown(text: MemoryText) -> str:
    """The sections of all devices as GitHub-flavoured Markdown."""
    lines = [f"## {escaped(text.title)}", ""]
    for section in text.sections:
        lines += [f"**{escaped(section.title)}**: {escaped(section.sentence)}", ""]
        lines += [f"- {escaped(note)}" for note in section.notes] + ([""] if section.notes else [])
        for table in section.tables:
            lines += table_lines(table)
    return "\n".join(lines).rstrip() + "\n"
