"""Listeners to events during a command's work: a terminal, a log for a machine, a metrics file."""
