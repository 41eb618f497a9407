"""Answers in the form that a request specifies."""
