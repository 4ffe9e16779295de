"""``tracediff collect``: passes its options on to the collector, which needs only torch."""

from __future__ import annotations

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def collect(context: click.Context, arguments: tuple[str, ...]) -> int:
    """Run steps under torch.profiler and write trace sets."""
    import sys

    from tracediff.collect.__main__ import main
    from tracediff_cli.progress import collecting_progress
    from tracediff_cli.show_collection import show_collection

    collector_arguments = (
        sys.argv[sys.argv.index("collect") + 1 :] if "--" in sys.argv else list(arguments)
    )  # click swallows the first --
    context.exit(
        main(
            collector_arguments,
            lambda request: show_collection(request.out, request.json_file, request.markdown_file),
            collecting_progress(),
        )
    )
