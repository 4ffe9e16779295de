"""profile: `Trace` → `Profile`, the small tables per step that everything later is made of.

`build` makes it: `placement` says where events belong, `events` joins those of a file, `tables` and `leaves` sum them,
`kernels` says what a kernel or operator is called and is.
"""
