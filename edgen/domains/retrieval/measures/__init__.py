"""Measures of data sets for response selection."""
