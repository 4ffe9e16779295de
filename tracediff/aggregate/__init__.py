"""aggregate: `Profile`s of files → `TraceSet`, one side as runs and ranks, and its summary per step.

`assemble` says which file is whose run and rank, `completeness` what is missing; `averages`, `samples` and `call_tree`
are the numbers per step, `tables` and `collective_skew` those of `--table`; `snapshot` writes a set into one file of
KB.
"""
