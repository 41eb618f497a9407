"""Preference pairs: what to compare, what a judge said, which label follows, what the verdicts hang on."""
