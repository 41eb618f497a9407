"""Readers of prompts: the kind of request, its roles and scenario, and the layout of the answer."""
