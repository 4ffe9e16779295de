"""analyses: what is found by following events: the critical path, collectives, allocations, a launch's chain."""
