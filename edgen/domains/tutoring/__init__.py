"""Tutoring: a student works through exercises, and several tutors respond to each turn."""
