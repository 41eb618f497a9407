"""Runs on which tests/test_conformance.py checks the objects of this domain."""

JOBS = {"forum": "tech_support"}
