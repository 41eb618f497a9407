"""Conversations and single turns, as a model would write them."""
