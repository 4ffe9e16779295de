"""profile: `Trace` → `Profile`, the small tables per step that everything later is made of; and `TraceSet`, profiles as
runs and ranks.

`steps`, `launches` and `lanes` place events; `states` is the step account, `build` makes the tables, `average` the
per-step numbers of a set.
`names` and `families` say what a kernel or op is called and is.
"""
