"""Exercises that a grammar makes from a space's values: a question, right answers, and points that a tutor
may make."""
