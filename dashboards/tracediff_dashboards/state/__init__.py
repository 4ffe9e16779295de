"""The state of a page: in the URL, in its controls, and in the table and the flame graph."""
