"""Merging of pieces of a job, or of runs of one job, into one run; and creation of runs from others."""
