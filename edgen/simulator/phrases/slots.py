"""Slots of phrases, the items that a text names, and punctuation around filled slots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from edgen.space.phrases import SLOT

LONG_ENOUGH = 25  # characters; repeating shorter parts sounds natural
_QUOTED = re.compile(r"[“\"]([^“”\"]{2,160})[”\"]")
_AFTER_COLON = re.compile(r":\s+(.{2,160}?)(?=[.?!](?:\s|$)|$)")
_DOUBLED = re.compile(r"(?<![.?!…])([?!…])\.(?!\.)|(?<!\.)\.\.(?!\.)")


@lru_cache(maxsize=4_096)
def split_phrasing(phrasing: str) -> tuple[tuple[str, ...], str | None]:
    """Return a phrasing split at its slots, and its longest literal part if that is as long as a sentence."""
    parts = tuple(SLOT.split(phrasing))
    longest = max(parts[::2], key=len).strip()
    return parts, longest if len(longest) >= LONG_ENOUGH else None


@lru_cache(maxsize=4_096)
def split_words(words: str) -> tuple[str, str | None, str | None]:
    """Split words to listen for, in lower case, at their first slot: the text before, the slot, and the text
    after. Without a slot, the last two are None. With several slots, the text after is None."""
    before, *rest = SLOT.split(words)
    slot, after = (rest[0], rest[1].lower()) if len(rest) == 2 else (rest[0] if rest else None, None)
    return before.lower(), slot, after


class Slot(NamedTuple):
    """A slot: its name and field, whether it begins in lower case, and whether it requires an item that has
    not been said."""

    name: str
    field: str
    lower: bool
    new: bool


@lru_cache(maxsize=4_096)
def read_slot(slot: str) -> Slot:
    """Return a slot's parts."""
    path, _, how = slot.partition(":")
    name, _, field = path.partition(".")
    return Slot(name, field, how == "lower", how == "new")


def names_item(text: str, item: str) -> bool:
    """Return whether a text contains an item as whole words, ignoring the item's last mark."""
    item = item.rstrip(".?!")
    end = text.find(item) + len(item)
    return end >= len(item) and not text[end : end + 1].isalnum()


def find_last_example(heard: Sequence[str]) -> str | None:
    """Return the last example in the heard turns: words in quotation marks, or after a colon."""
    for text in reversed(heard):
        if found := _QUOTED.search(text) or _AFTER_COLON.search(text):
            return found[1].strip().rstrip(".")
    return None


def fix_ends(text: str) -> str:
    """Return the text without a full stop after another mark, and with a capital."""
    if "?." in text or "!." in text or ".." in text or "…." in text:
        text = _DOUBLED.sub(lambda found: found[1] or ".", text)
    return text if text[:1].isupper() else text[:1].upper() + text[1:]
