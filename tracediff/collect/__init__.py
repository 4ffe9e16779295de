"""collect: run steps under torch.profiler and write trace sets. Needs torch and the standard library only."""
