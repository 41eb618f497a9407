"""Measures of tutoring sessions."""
