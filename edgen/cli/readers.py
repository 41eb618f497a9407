"""Values of options that are made from words: ranges, and names by words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgen.core.errors import UsageError


def read_scenarios(text: str) -> range:
    """Read `A:B` as a range of scenarios. Raises UsageError."""
    found = re.fullmatch(r"([0-9]{1,13}):([0-9]{1,13})", text.strip())
    if found is None or int(found[1]) >= int(found[2]):
        raise UsageError(f"--range {text}: expected A:B with A below B, as in --range 0:10000.")
    return range(int(found[1]), int(found[2]))


def read_roles(assignments: Sequence[str]) -> dict[str, str]:
    """Return the roles by the data sets' words for them, from texts like ROLE=WORD. Raises UsageError."""
    found: dict[str, str] = {}
    for one in assignments:
        role, equals, word = (part.strip() for part in one.partition("="))
        if not (role and equals and word):
            raise UsageError(f"--role {one}: expected ROLE=WORD, as in --role Tutor=Agent.")
        found[word] = role
    return found
