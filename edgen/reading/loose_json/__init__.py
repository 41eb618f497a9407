"""Conversations in JSON as models write it, mended where a strict parser refuses it."""
