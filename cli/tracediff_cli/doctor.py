"""``tracediff doctor``."""

from __future__ import annotations

import click

from tracediff_cli.options.groups import GroupedCommand


@click.command(cls=GroupedCommand)
def doctor() -> int:
    """Show what is installed, what each part is for, and how to get what is missing.

    \b
    Example:
      tracediff doctor
    """
    from tracediff.errors import printable
    from tracediff_cli.installation import installed_parts

    parts = installed_parts()
    name, purpose = (
        max(len(text) for text in texts) for texts in zip(*((p.name, p.purpose) for p in parts), strict=True)
    )
    for part in parts:
        mark = "ok     " if part.found else "missing"
        click.echo(printable(f"{mark}  {part.name:{name}}  {part.purpose:{purpose}}  {part.found or part.remedy}"))
    return 0
