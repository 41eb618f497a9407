"""Phrases of roles: the phrase book, and phrases in spaces."""
