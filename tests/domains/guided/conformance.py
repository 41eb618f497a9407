"""Runs on which tests/test_conformance.py checks the objects of this domain."""

JOBS = {"guided": "lesson_plan"}
FAMILIES = {"dialogue": "guided"}
FORMATS = {"crwiz": "guided"}
