"""What is read: the sets that may be, their comparisons, and the events of single steps."""
