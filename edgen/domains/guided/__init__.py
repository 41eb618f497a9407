"""Guided conversations: a state machine offers one role what it may say, and a world changes with what is
said."""
