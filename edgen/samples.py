"""Conversations of runs and of anybody's files, as the measures take them."""
