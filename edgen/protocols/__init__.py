"""Kinds of model use, one per file; the registry finds them by name. A kind is imported on first use, since
its readers take time to load.
"""
