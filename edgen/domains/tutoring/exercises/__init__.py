"""Exercises made from a space's values by a grammar: a question, right answers, and points that a tutor
may make."""
