"""statistics: what a few runs per side show. Everything is on logarithms, so that an effect is a ratio
(docs/statistics.md).

`runs` judges one number per run (the step), `many` hundreds of them at once (operators, families, states). Runs are the
unit: more steps do not replace them.
"""
