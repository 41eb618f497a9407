"""Readers of prompts: the request of each kind, its roles and scenario, and the layout of the answer."""
