"""Measures of data sets and comparisons of runs. Measures are streamed, and their definitions name their
sources."""
