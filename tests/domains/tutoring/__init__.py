"""Tests of tutoring sessions and exercises."""
