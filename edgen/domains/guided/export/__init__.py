"""Guided conversations as the files of CRWIZ."""
