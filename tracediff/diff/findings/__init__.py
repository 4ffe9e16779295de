"""findings: the causes of a change, each with its evidence, stated only if the traces support them (docs/findings.md).

`step` reads the step account, `work` the matched kernels, `program` compilation, CUDA graphs, graph breaks, ranks and
inputs, `work_rate` the rates of equal work, `memory` the peaks, `critical` the critical path. Each module is a list of
functions Comparison → findings; `find` runs them all.
"""
