"""matching: which work of the control is which work of the test, in levels of falling trust (docs/matching.md).

`cascade` goes through the levels; `calls` pairs the two call trees, on which exact, op and module rest; `fusion` and
`sequence` are levels of their own; `align` finds the longest common order of two sequences. All of it is symmetric:
swapping the sides swaps the answer.
"""
