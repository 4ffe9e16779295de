"""leaves: what each step waited for, by work and by what the host did, with all time of the same in its period
(docs/explanation.md).

`parts` divides the critical path and the period, `keys` says what each part belongs to, `table` adds them up. The path
tiles the period, so the times on the path add up to it.
"""
