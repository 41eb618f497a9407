"""Roles of any name: which are named by a prompt, and which of them speak as a teacher does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import cycle

_LEADS = re.compile(
    r"teacher|tutor|instructor|coach|mentor|trainer|lecturer|professor|examiner|interviewer|counsell?or|therapist|expert"
    r"|guide|host|moderator|facilitator|adviser|advisor|parent|doctor|librarian",
    re.IGNORECASE,
)
_NAME = r"[^\W\d_][\w-]{0,30}"
# A line of the layout that a prompt shows, in the published form or in JSON: `   Tutor:  "...",`.
_SHOWN = re.compile(
    rf"^[ \t]*[*\-\"]{{0,3}}({_NAME})[*\"]{{0,3}}:[ \t]*[\"“]?(?:\.\.\.|…)|\"role\":[ ]?\"({_NAME})\"",
    re.MULTILINE,
)
_NOT_ROLES = {"conversation", "probability", "text", "role"}


def named_roles(prompt: str) -> tuple[str, ...]:
    """The roles of the layout that a prompt shows, in their order; empty where it shows none or one."""
    found = dict.fromkeys(one or other for one, other in _SHOWN.findall(prompt))
    names = tuple(name for name in found if name.lower() not in _NOT_ROLES)
    return names if len(names) > 1 else ()


def leads(name: str) -> bool:
    """Whether somebody called so teaches, as far as the name tells."""
    return _LEADS.search(name) is not None


def in_roles(spoken: Sequence[tuple[str, str]], names: tuple[str, ...]) -> list[tuple[str, str]]:
    """A conversation of a teacher and a student as one of these roles: those who lead take the teacher's turns one
    after the other, all others the student's."""
    teachers = [name for name in names if leads(name)]
    if len(teachers) in (0, len(names)):
        teachers = [names[0]]
    speakers = {"Teacher": cycle(teachers), "Student": cycle(name for name in names if name not in teachers)}
    return [(next(speakers[role]), text) for role, text in spoken]
