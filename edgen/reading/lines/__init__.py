"""Conversations in lines that each begin with who speaks."""
