"""Conversations and single turns that a model would write."""
