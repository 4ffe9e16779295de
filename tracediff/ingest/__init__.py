"""ingest: one trace file → `Trace`, its events as columns of int64 nanoseconds and dictionary codes.

`source` opens bytes, `chunks` cuts them between events, `decode` and `arguments` turn a chunk into columns, `times`
keeps nanoseconds exact,
`read` puts it together. `discover` says which files a set is made of. Whatever is dropped or repaired becomes a health
note.
"""
