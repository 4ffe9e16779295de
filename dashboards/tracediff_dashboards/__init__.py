"""The dashboard: a Dash app for exploring a comparison. It computes nothing of its own: every number and figure is the
library's.

The address of a page is its whole state: `filters` reads and writes it, so that a copied link shows the same view and
two tabs never mix. `sets` says which
traces may be read, `loading` reads them in processes of their own, `comparisons` keeps what was compared; `pages` turn
a comparison into components,
`app` puts them together, and `security` stands before all of it.
"""
