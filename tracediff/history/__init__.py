"""history: snapshots of many commits in one folder → the step time of each commit, the changes beyond the noise, and
what explains each of them.
"""
