"""api: the library as users call it; every public name is an attribute of `tracediff` (docs/stability.md)."""
