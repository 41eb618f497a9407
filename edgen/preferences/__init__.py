"""Preference pairs as pure values and functions: what to compare, what a judge said, which label follows.

Nothing here does I/O. `model` holds the values, `oracle` asks a judge (a generator, like a protocol).
"""
