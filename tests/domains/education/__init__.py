"""Tests of Education Dialogue."""
