"""Listeners to a command's events, requested by options: a log, metrics, notifications."""
