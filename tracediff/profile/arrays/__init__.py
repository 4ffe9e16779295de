"""arrays: what arrays of int64 need: intervals, their union per step, codes and sums of equal rows."""
