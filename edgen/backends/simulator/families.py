"""Phrases about learning, teaching and reacting, sorted into kinds, as the simulator uses them.

A kind is known by name to the phrase book (phrases.txt). What fits no kind is `other` and is used
in its own words. The tables are those of `edgen.quality.ways`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from edgen.quality.ways import (
    METHODS,
    OTHER,
    STUDENT_KINDS,
    TEACHER_KINDS,
    match,
    methods,
    parts,
    student_reaction,
    teacher_reaction,
)

__all__ = [
    "METHODS",
    "OTHER",
    "STUDENT_KINDS",
    "TEACHER_KINDS",
    "hedged",
    "match",
    "methods",
    "parts",
    "stage_direction",
    "student_reaction",
    "teacher_reaction",
]


@lru_cache(maxsize=4096)
def hedged(phrase: str) -> bool:
    """Whether the phrase says that somebody *might* do it."""
    return (
        re.search(r"\b(?:might|may|can|could|sometimes|perhaps|tries|occasionally)\b", phrase.lower())
        is not None
    )


@lru_cache(maxsize=4096)
def stage_direction(phrase: str) -> str:
    """A reaction of no known kind as something seen: `and starts to hum otherwise` -> `*starts to hum*`."""
    text = re.sub(
        r"^(?:and|but|or|then|who|might|may|he|she|they|will|\W)+\b\s*", "", phrase.strip(), flags=re.I
    )
    text = re.sub(r"[\s,.;]*(?:\botherwise)?[\s,.;*]*$", "", text, flags=re.I)
    return f"*{text}*" if text else ""
