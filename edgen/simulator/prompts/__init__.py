"""Readers of prompts: what each kind asks for, its roles and scenario, and the layout of the answer."""
