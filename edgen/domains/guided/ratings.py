"""A reader of answers to a questionnaire: a JSON object, or a line for each item (`task: 6`).

A rating is a whole number on its item's scale, as `6`, `"6"`, `6/7` or `6 (agree)`; anything else is invalid.
An answer without a rating is rejected. Free-text items may be missing. Never raises; linear in the reply's
length.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from edgen.plugin import Rejection
from edgen.plugin.answers import (
    TEACHER_STUDENT,
    JsonMembers,
    body_of,
    find_service_refusal,
    fold_key,
    parse,
    replace_surrogates,
)
from edgen.plugin.protocols import RejectionReason, Scale
from edgen.plugin.texts import excerpt

MAX_TEXT = 2_000  # characters of one free answer
_RATING = re.compile(
    r"[\"'*\s]{0,6}(-?\d{1,6})(?:\.0)?[\"'*]{0,3}(?:\s{0,3}/\s{0,3}(\d{1,6})|\s.{0,80}|[.,]?)\s{0,3}"
)
_LINE = re.compile(
    rf"^[\s*_#>\"'-]{{0,8}}([\w][\w .-]{{0,59}}?)[\s*_\"']{{0,6}}[:：=]\s{{0,5}}(.{{0,{MAX_TEXT}}})$"
)


def read_ratings(
    text: str,
    items: Mapping[str, Scale | None],
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
) -> dict[str, int | str] | Rejection:
    """Return the answer to each item by its name; a scale of None means free text. Return a rejection if a
    rating is missing or out of its scale."""
    if (refused := find_service_refusal(refusal, finish_reason)) is not None:
        return refused
    given = _read_answers(body_of(text), items)
    found: dict[str, int | str] = {}
    for name, scale in items.items():
        value = given.get(fold_key(name))
        if scale is None:
            if isinstance(value, str) and (said := replace_surrogates(value.strip()[:MAX_TEXT], [])):
                found[name] = said
            continue
        rating = _read_rating(value, scale)
        if rating is None:
            told = "has no answer" if value is None else f"is answered by {excerpt(str(value))}"
            cut = RejectionReason.TRUNCATED if finish_reason == "length" else RejectionReason.UNREAD
            return Rejection(cut, f"{name} {told}, and the scale is {scale[0]} to {scale[1]}")
        found[name] = rating
    return found


def _read_answers(text: str, items: Mapping[str, Scale | None]) -> dict[str, Any]:
    """Return the answer to each item, by its folded name; the first answer counts."""
    wanted = {fold_key(name) for name in items}
    start = text.find("{")
    parsed = parse(text[start:], TEACHER_STUDENT) if start >= 0 else None
    for value in parsed.values if parsed is not None else ():
        if isinstance(value, JsonMembers) and any(fold_key(key) in wanted for key, _ in value):
            return {fold_key(key): said for key, said in reversed(value)}
    lines = [match for line in text.split("\n") if (match := _LINE.match(line))]
    return {fold_key(match[1]): match[2] for match in reversed(lines)}


def _read_rating(value: Any, scale: Scale) -> int | None:
    low, high = scale
    if isinstance(value, str) and (number := _RATING.fullmatch(value)) is not None:
        if number[2] is not None and int(number[2]) != high:
            return None
        value = int(number[1])
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        return None
    return int(value) if value == int(value) else None


def make_token(seed: int, scenario: int, replicate: int) -> str:
    """Return a token that links a conversation's log with the answers afterwards: 10 letters and digits,
    always the same for one conversation."""
    place = f"{seed}/{scenario}/{replicate}/token"
    return hashlib.blake2b(place.encode(), digest_size=5).hexdigest().upper()
