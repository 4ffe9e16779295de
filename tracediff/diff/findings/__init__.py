"""findings: what explains the change, each with its evidence; stated only where the data carries it (docs/findings.md
has a line for each code).

`step` reads the step account, `work` the matched kernels, `program` what the program did (compiling, graphs, breaks,
ranks), `work_rate`
how fast equal work is done, `memory` the peaks, `critical` the critical path. Each module is a list of functions
Comparison → findings; `find` runs them all.
"""
