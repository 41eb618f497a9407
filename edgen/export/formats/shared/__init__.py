"""Rows that several formats build on: completions, pairs, replies of the trained role."""
