"""Measures of Education Dialogue's conversations."""
