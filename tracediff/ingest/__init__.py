"""ingest: one trace file → `Trace`, its events as columns of int64 nanoseconds and dictionary codes.

`files.source` opens bytes and `read` picks the module of their format in `readers`. Of Kineto's JSON `json.chunks` cuts
the text between events, `json.native` (the extension) and `json.events` read them, `json.decode` and `json.arguments`
make columns of them, `model.times` keeps nanoseconds exact. `discover` finds the files of a set. Whatever is dropped or
repaired becomes a health note.
"""
