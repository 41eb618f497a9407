"""Measures of a data set: one file each, streamed, every definition with its source."""
