"""Texts that address their judge: a signal of a pair, and a reason not to label it.

In an ordinary conversation no role refers to the conversation by its number, or to an evaluator, or uses the
headings of a judge's prompt. A text that does so counts as an attempt to influence the judge, successful or
not. judge_directed.txt has the forms by purpose, each in several languages. `evaluator_appeals` recognises
sentences that request a mark, a rank, a label or a preference by their structure. The forms are long enough
not to occur in ordinary lessons, since each false alarm removes a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from edgen.preferences.evaluator_appeals import find_appeal
from edgen.preferences.text_forms import Forms, read_sections

_SHOWN = 120  # characters of a found part
_INVISIBLE = re.compile(
    r"[\u00ad\u064b-\u0650\u0652\u0670\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)

_SECTIONS = read_sections(Path(__file__).with_suffix(".txt"))
_LINES = Forms({"lines": _SECTIONS["lines"]}, re.MULTILINE)
_PHRASES = Forms({"phrases": _SECTIONS["phrases"]})


def judge_directed(text: str) -> str | None:
    """Return the first part of a text that addresses a judge or imitates a judge's prompt; None without one.

    Ignores wide forms of letters, invisible characters and Arabic vowel signs.
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    lines = "\n".join(text.splitlines())
    form = _find_first_match(_LINES.choose(lines)["lines"], lines)
    if form is None and (phrases := _PHRASES.choose(lines)["phrases"]):
        form = _find_first_match(phrases, " ".join(lines.split()))
    if form is not None:
        return " ".join(form[0].split())[:_SHOWN]
    appeal = find_appeal(lines)
    return None if appeal is None else " ".join(appeal.split())[:_SHOWN]


def _find_first_match(forms: Iterable[re.Pattern[str]], text: str) -> re.Match[str] | None:
    """Return the match that begins first. If several begin there, return the first form's."""
    found = [match for form in forms if (match := form.search(text))]
    return min(found, key=lambda match: match.start(), default=None)


def find_first_directed(texts: Iterable[str]) -> str | None:
    """Return the part that addresses a judge, from the first text that has one; None without one."""
    return next((found for text in texts if (found := judge_directed(text)) is not None), None)
