"""Validation of records for users of Education Dialogue data.

`schema.is_valid` checks one record, fast enough for every record that is made. `checker.find_problems`
explains in plain words what is wrong and where; `checker.Checker` does so for whole files. `repair.fix` makes
the repairs that need no invented word. A finding of severity "error" would break a loader, or add words to
training data that no speaker said; a "warning" is readable but unusual.
"""
