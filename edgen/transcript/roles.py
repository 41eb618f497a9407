"""Which side a name means."""

from __future__ import annotations

import re

from edgen.model import Role

SIDES: dict[str, Role] = {"teacher": "Teacher", "student": "Student"}
# Taken only where the reply does not speak of a teacher and a student.
ALIASES: dict[str, Role] = {
    "tutor": "Teacher",
    "instructor": "Teacher",
    "professor": "Teacher",
    "educator": "Teacher",
    "assistant": "Teacher",
    "model": "Teacher",
    "ai": "Teacher",
    "t": "Teacher",
    "learner": "Student",
    "pupil": "Student",
    "user": "Student",
    "human": "Student",
    "s": "Student",
}
_SIDE = re.compile(r"(?<![^\W_])(teacher|student)s?(?![^\W\d_])", re.IGNORECASE)
_PLAIN = re.compile(r"[\W_]{0,16}+(teacher|student)(?:[\W_]*\Z)", re.IGNORECASE)


def side(name: str) -> Role | None:
    """The one side that a name speaks of: `teacher`, `Ms. R (Teacher)`, `Student 1`."""
    found = {match[1].lower() for match in _SIDE.finditer(name[:200])}
    return SIDES[found.pop()] if len(found) == 1 else None


def alias(name: str) -> Role | None:
    """The side that a name stands for which is neither teacher nor student."""
    return ALIASES.get(name[:40].strip().lower())


def plain(name: str) -> bool:
    """Whether the name is the bare role, marks of the layout aside."""
    return _PLAIN.match(name[:200]) is not None
