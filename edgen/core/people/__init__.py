"""Requests to people, and tables that they fill in."""
