"""The scores of a rubric out of a judge's reply: a JSON object with a number for each name.

The object may stand in a code fence or after words, have the errors that models make in JSON, and hold the
scores one level down. A number may be `7`, `"7"`, `"7/10"` or `{"score": 7, …}`. There are no scores if a
name is missing, if a name has two different numbers, or if a number is out of range. Never raises; linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from edgen.core.text import compile_later
from edgen.reading.answer_body import fold_key
from edgen.reading.loose_json.parser import JsonMembers, parse
from edgen.reading.roles import TEACHER_STUDENT
from edgen.reading.text.thinking import drop_thinking

MOST_SCORE = 10  # the highest score; the lowest is 0
_NUMBER = compile_later(
    rf"\s{{0,20}}(\d{{1,3}}(?:\.\d{{1,9}})?)\s{{0,20}}(?:/\s{{0,20}}{MOST_SCORE})?\s{{0,20}}"
)


def read_scores(text: str, names: Sequence[str]) -> dict[str, float] | None:
    """Return the score of each name, in [0, MOST_SCORE]; None in doubt."""
    text = drop_thinking(text.replace("\r\n", "\n"), [])
    start = text.find("{")
    parsed = parse(text[start:], TEACHER_STUDENT) if start >= 0 else None
    if parsed is None or parsed.cut:
        return None
    wanted = {fold_key(name): name for name in names}
    for members in _list_objects(parsed.values):
        if any(fold_key(key) in wanted for key, _ in members):
            return _read_scores(members, wanted)
    return None


def _list_objects(values: Sequence[Any]) -> Iterator[JsonMembers]:
    """Yield the objects, and those that they hold directly."""
    for value in values:
        if isinstance(value, JsonMembers):
            yield value
            yield from (child for _, child in value if isinstance(child, JsonMembers))


def _read_scores(members: JsonMembers, wanted: dict[str, str]) -> dict[str, float] | None:
    found: dict[str, float] = {}
    for key, value in members:
        name = wanted.get(fold_key(key))
        if name is None:
            continue
        score = _read_score(value)
        if score is None or found.get(name, score) != score:
            return None
        found[name] = score
    return found if len(found) == len(wanted) else None


def _read_score(value: Any) -> float | None:
    if isinstance(value, JsonMembers):
        value = next((number for key, number in value if fold_key(key) == "score"), None)
    if isinstance(value, str) and (number := _NUMBER.fullmatch(value)) is not None:
        value = float(number[1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MOST_SCORE else None
