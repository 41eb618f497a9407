"""Kinds of conversations, one folder each."""
