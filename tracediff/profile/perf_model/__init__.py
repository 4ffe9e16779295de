"""perf_model: FLOPs and bytes of operators from their recorded inputs, and the peaks of devices."""
