"""The types of the names in tools.py."""
