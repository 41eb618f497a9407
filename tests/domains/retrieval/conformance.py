"""Runs on which tests/test_conformance.py checks the objects of this domain."""

FORMAT_OPTIONS = {"dstc7": {"candidates": "10"}}
