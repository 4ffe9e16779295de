"""memory: a memory snapshot of torch's caching allocator → what holds its peak, and what differs between two.

`plain_pickle` reads the pickle without admitting any class, `snapshot` makes blocks, segments and events of it,
`lifetimes` says when each block existed, and `account` divides the peak among call sites, follows them over the
recording, and compares two accounts. All amounts are whole bytes, and the parts of a peak add up to it exactly.
"""
