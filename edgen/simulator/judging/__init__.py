"""Answers of judges, and the truth that they can be compared with."""
