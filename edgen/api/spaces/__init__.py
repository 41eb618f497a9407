"""Preference spaces: describe them, extend them, and make them from tables and released files."""
