"""Phrases of roles: the phrase book, and those of spaces."""
