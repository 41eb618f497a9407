"""Is this a record that a consumer of Education Dialogue data can load and trust?

`schema.is_valid` answers yes or no for one record, fast enough for every record that is made. `checker.problems` says
in plain words what is wrong and where; `checker.Checker` does so for whole files. `repair.fix` repairs what can be
repaired without inventing a word. What has severity "error" would break a loader or put words into training that
nobody said; a "warning" reads right but is unusual.
"""
