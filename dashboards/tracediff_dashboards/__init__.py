"""The dashboard: a Dash app to explore a comparison. All numbers and figures come from the library.

The URL of a page contains its whole state, so that a copied link shows the same view and tabs are independent;
`state.view` reads and writes it. `sets` defines which traces may be read, `loading` reads them in separate processes,
`comparisons` caches comparisons, `pages` turn a comparison into components, `callbacks` connects everything,
and `security` checks every request.
"""
