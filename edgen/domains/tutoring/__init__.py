"""Tutoring: a student goes through exercises, and several tutors respond to each turn."""
