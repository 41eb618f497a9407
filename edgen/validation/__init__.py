"""Validation of records for users of Education Dialogue data.

`schema.is_valid` checks one record, and is fast enough to check every new record. `checker.find_problems`
explains in plain words what is wrong and where; `checker.Checker` does so for whole files. `repair.fix` makes
the repairs that invent no words. A finding of severity "error" would break a loader, or add words to training
data that no speaker said. A "warning" is readable but unusual.
"""
