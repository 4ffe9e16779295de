"""diff: two `TraceSet`s → `Comparison`: both accounts side by side, the ops, whether like is compared with like, and
the verdict.

Every number is an integer numerator over one scale (`Comparison.scale`, in 1/scale nanoseconds or events), so that
accounts close exactly.
`step_time` says where the time went, `gpu_time` which work changed, `ops` what was called how often, `preflight`
whether it may be compared.
"""
