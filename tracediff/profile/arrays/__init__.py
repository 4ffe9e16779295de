"""arrays: functions on int64 arrays: intervals, their union per step, codes and sums of equal rows."""
