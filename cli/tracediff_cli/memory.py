"""``tracediff memory SNAPSHOT [SNAPSHOT]``."""

import click

from tracediff_cli.options.groups import (
    Documents,
    Input,
    WholeNumber,
    chart_folder,
    command_line,
    documents,
    grouped_command,
    option,
)


@grouped_command
@click.argument("control", metavar="SNAPSHOT", type=Input())
@click.argument("test", metavar="[SNAPSHOT]", required=False, type=Input())
@option("--top", type=WholeNumber(0), default=10, help="Show N rows per table [default: 10].")
@documents(
    json="Write the result as JSON (- is standard output).",
    markdown="Write the tables as Markdown (- is standard output).",
    html="Write everything as one page that works offline.",
)
@chart_folder
def memory(
    control: str,
    test: str | None,
    top: int,
    documents: Documents,
    chart_folder: str | None,
) -> int:
    """Show what holds the peak of GPU memory, and what changed between two memory snapshots.

    A memory snapshot is a file of torch.cuda.memory._dump_snapshot, plain or compressed (gzip, zstd).

    \b
    Examples:
      tracediff memory snapshot.pickle
      tracediff memory before.pickle after.pickle
      tracediff memory before.pickle.gz after.pickle.gz --html memory.html --json memory.json
    """
    from tracediff.memory.account import account_of
    from tracediff.present.memory import memory_text
    from tracediff.report import memory as report

    accounts = [account_of(path) for path in (control, test) if path is not None]
    text = memory_text(accounts, top)
    console = documents.write(
        json=lambda: report.to_json(accounts),
        markdown=lambda: report.to_markdown(text),
        html=lambda: report.to_html(text, accounts, command_line()),
    )
    if chart_folder:
        from tracediff.charts.figures.memory import memory_layers
        from tracediff.report.charts_files import write_figures

        write_figures({"memory_layers": memory_layers(accounts)}, chart_folder)
    if console:
        report.show(text, console)
    return 0
