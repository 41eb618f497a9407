"""Tests of forums."""
