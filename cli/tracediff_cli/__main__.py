"""``python -m tracediff_cli``."""

from tracediff_cli.main import main

main()
