"""placement: where an event belongs: its step, its launch, the scopes around it, its module and its node in the tree of
calls.
"""
