"""Readers of data sets of response selection, one each."""
