"""Layers: labels that annotators put on the turns or conversations of an existing run."""
