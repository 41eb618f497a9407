"""Readers of files of answers: rankings, labels, the truth, and what is wrong with them."""
