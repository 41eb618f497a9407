"""Expressions over one conversation, for `edgen select` and a job's gates: a small language with a few
functions. It never runs Python code."""
