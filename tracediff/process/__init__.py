"""Processes: how ours end, those that we start, what they leave, and searches and files that have one of their own."""
