"""ingest: one trace file → `Trace`, its events as columns of int64 nanoseconds and dictionary codes.

`source` opens bytes and `read` picks the module of their format in `readers`. Of Kineto's JSON `chunks` cuts the text
between events, `native` (the extension) and `events` read them, `decode` and `arguments` make columns of them, `times`
keeps nanoseconds exact. `discover` finds the files of a set. Whatever is dropped or repaired becomes a health note.
"""
