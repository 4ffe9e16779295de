"""Run steps under torch.profiler and write trace sets; needs torch and the standard library only."""
