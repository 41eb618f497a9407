"""Slots in texts: `{robot}` is a variable of the world or a dimension of the space, `{robot.area}` a field of
an entry of that dimension. CRWIZ has the same syntax; a brace before anything else is plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SLOT = re.compile(r"\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)\}", re.ASCII)


def list_slots(text: str) -> tuple[str, ...]:
    """Return the names of the slots of a text, each once, in order of appearance."""
    return tuple(dict.fromkeys(_SLOT.findall(text)))


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Return the text with each slot replaced by its value.

    `values` are a scenario's (`Scenario.as_row()`), overridden by the world's. A list is written as `a, b and
    c`. A slot without a value stays unchanged.
    """
    return _SLOT.sub(lambda found: as_text(values[found[1]]) if found[1] in values else found[0], text)


def as_text(value: Any) -> str:
    """Return a value as text for people: whole numbers without a decimal point, truth values as yes and no,
    lists with an `and`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        *before, last = [as_text(one) for one in value] or [""]
        return f"{', '.join(before)} and {last}" if before else last
    return str(value)


def fill_phrases(words: Iterable[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words of a lock with their slots filled. A word that is only a slot stands for each element
    of its value if that is a list."""
    found: list[str] = []
    for word in words:
        whole = _SLOT.fullmatch(word.strip())
        value = values.get(whole[1]) if whole else None
        found += map(as_text, value) if isinstance(value, list | tuple) else [fill(word, values)]
    return tuple(phrase for phrase in found if phrase.strip())


def contains_phrase(text: str, phrase: str) -> bool:
    """Return whether a text holds a phrase as whole words, ignoring case and the kind and amount of white
    space."""
    words = r"\s+".join(map(re.escape, phrase.casefold().split()))
    return bool(words) and re.search(rf"(?<!\w){words}(?!\w)", text.casefold()) is not None
