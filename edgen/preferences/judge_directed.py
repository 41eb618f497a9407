"""Texts that speak to whoever judges them: a signal of a pair, and a reason not to label it.

A person who teaches or learns does not speak of the interaction that he is in by its number, nor to an evaluator,
nor in the headings of a judge's prompt. A text that does is taken for one that would have the judge say something,
whether the judge fell for it or not. The forms stand in judge_directed.txt by what they do; each has those of several languages.
What is looked for is long enough that ordinary lessons do not have it: a false alarm takes a label away.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

_SHOWN = 120  # characters of what was found
_INVISIBLE = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")

_NAME = re.compile("<([A-Z_]+)>")


def _read_forms(text: str) -> dict[str, list[str]]:
    """The lines of each section, names of alternatives replaced by these."""
    names: dict[str, str] = {}
    sections: dict[str, list[str]] = {"lines": [], "phrases": [], "stems": []}
    section = ""
    for line in text.splitlines():
        if line in ("[names]", "[lines]", "[phrases]", "[stems]"):
            section = line[1:-1]
        elif not line or line.startswith("# "):
            continue
        elif section == "names":
            name, _, form = line.partition(" = ")
            names[name] = form
        else:
            sections[section].append(_NAME.sub(lambda found: names[found[1]], line))
    return sections


_FORMS = _read_forms(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))
_STEMS = tuple(" ".join(_FORMS["stems"]).split())  # most turns have none, and are not looked at more closely
_LINE = re.compile("|".join(f"(?:{form})" for form in _FORMS["lines"]), re.IGNORECASE | re.MULTILINE)
_PHRASE = re.compile("|".join(f"(?:{form})" for form in _FORMS["phrases"]), re.IGNORECASE)


def judge_directed(text: str) -> str | None:
    """What in a text speaks to a judge or imitates a judge's prompt, as it was found; None if nothing does.

    Letters that only look wider, and characters that nobody sees, make no difference.
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    lower = text.lower()
    if not any(stem in lower for stem in _STEMS):
        return None
    text = "\n".join(text.splitlines())
    found = _LINE.search(text) or _PHRASE.search(" ".join(text.split()))
    return None if found is None else " ".join(found[0].split())[:_SHOWN]


def first_directed(texts: Iterable[str]) -> str | None:
    """What the first of several texts that speaks to a judge says to it."""
    return next((found for text in texts if (found := judge_directed(text)) is not None), None)
