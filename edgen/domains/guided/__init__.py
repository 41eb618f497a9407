"""Guided conversations: a state machine offers one role its utterances, which change a world."""
