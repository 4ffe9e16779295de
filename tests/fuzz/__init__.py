"""Inputs that no profiler writes, and what holds for each: `make fuzz`, and a corpus of what was found in the suite.

`seeds` makes small valid inputs, `mutate` spoils them, `targets` says what an input is and what is done with it,
`invariants` what must hold, `__main__` runs in processes until the time is up, `guided` lets atheris choose.
"""
