"""Answers in the form that a request asks for."""
