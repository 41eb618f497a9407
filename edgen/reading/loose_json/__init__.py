"""Conversations in JSON as models write it, fixed where a strict parser refuses it."""
