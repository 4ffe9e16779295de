"""explain: the change of a step as one tree that closes (docs/explanation.md).

`leaves` pairs what both sides' steps waited for, `singles` takes single events out of them, `amounts` measures how much
work each is, `effects` splits each change, `tree` adds them up, `lines` chooses which nodes to show, `facts` says first
whether the work is the same, `reasons/` attach what is known of a node, and `explain` runs them all.
"""
