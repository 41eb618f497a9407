"""Readers of files of answers: rankings, labels, the truth; and the problems of these files."""
