"""explain: the change of a step as one tree that closes (docs/explanation.md).

`leaves` pairs what both sides' steps waited for, `amounts` measures how much work each is, `tree` takes single events
out of them, splits each change and adds them up, `lines` chooses which nodes to show, `exposure` judges what of the
change each line accounts for, `work_facts` says first whether the work is the same, `reasons` attach what is known of
a node, `explanation` runs them all, and `compare` compares two sets with their explanation.
"""
