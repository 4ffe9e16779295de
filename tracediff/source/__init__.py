"""From the work to the code: which changed lines, between the commits of both sides, the changed work runs for."""
