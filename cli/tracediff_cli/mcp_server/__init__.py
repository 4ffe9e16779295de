"""The server of ``tracediff mcp``: tools for agents that answer with the command line's own text, page by page."""
