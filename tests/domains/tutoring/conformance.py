"""Runs on which tests/test_conformance.py checks the objects of this domain."""

JOBS = {"tutoring": "tutoring"}
FAMILIES = {"tutoring": "tutoring"}
KNOWN_BY_CONTENT = ("tutoring",)  # recognized by the exercises in its records
FORMATS = {"dialogue-acts": "tutoring", "intent-prediction": "tutoring", "msdialog-intent": "tutoring"}
