"""Requests and answers of HTTP: which are allowed, and what a user sees of an error."""
