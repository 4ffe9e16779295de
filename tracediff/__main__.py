"""``python -m tracediff``: the command line."""

import runpy

runpy.run_module("tracediff_cli.main", run_name="__main__", alter_sys=True)
