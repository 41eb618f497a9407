"""Exports of finished runs as data sets: one file per format in `formats/`, and shared code next to it."""
