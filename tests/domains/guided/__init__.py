"""Tests of guided conversations and their state machines."""
