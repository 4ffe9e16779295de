"""kernels: names of kernels and operators: what must agree between runs, what eyes see, which family they are, whether
they use matrix units.
"""
