"""Is this a record that a consumer of Education Dialogue data can load and trust?

`is_valid` answers yes or no for one record, fast enough for every record that is made. `problems`
says in plain words what is wrong and where; `Checker` does so for whole files. `fix` repairs what
can be repaired without inventing a word. What has severity "error" would break a loader or put
words into training that nobody said; a "warning" reads right but is unusual.
"""

from __future__ import annotations

from edgen.validation.checker import Checker, FileReport, decode, problems
from edgen.validation.findings import KINDS, Finding, Vocabulary
from edgen.validation.reading import Inputs, find_inputs, read_records, runs_at
from edgen.validation.repair import Change, Fixed, Fixer, LeftOut, fix
from edgen.validation.schema import conforms, is_valid
from edgen.validation.speech import Marker, Speech, read_speech

__all__ = [
    "KINDS",
    "Change",
    "Checker",
    "FileReport",
    "Finding",
    "Fixed",
    "Fixer",
    "Inputs",
    "LeftOut",
    "Marker",
    "Speech",
    "Vocabulary",
    "conforms",
    "decode",
    "find_inputs",
    "fix",
    "is_valid",
    "problems",
    "read_records",
    "read_speech",
    "runs_at",
]
