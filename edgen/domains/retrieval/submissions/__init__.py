"""Readers of rankings, labels and right answers, and the problems of these files."""
