"""Listeners to events during a command's work that an option asks for: a log, metrics, notifications."""
