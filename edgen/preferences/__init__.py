"""Preference pairs: comparisons, signals, labels, and biases of verdicts."""
