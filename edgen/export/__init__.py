"""Finished runs as data sets: one file a format in `formats/`, and what all formats share beside it."""
