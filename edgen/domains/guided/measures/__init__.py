"""Measures of guided conversations."""
