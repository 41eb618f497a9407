"""Layers: labels that are put on a run's turns or conversations afterwards, by annotators."""
