"""Exercises that a space's values make: a question, right answers, and what a tutor may tell, by a
grammar."""
