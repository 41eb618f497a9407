"""Texts that speak to whoever judges them: a signal of a pair, and a reason not to label it.

A person who teaches or learns does not speak of the interaction that he is in by its number, nor to an evaluator,
nor in the headings of a judge's prompt. A text that does is taken for one that would have the judge say something,
whether the judge fell for it or not. The forms stand in judge_directed.txt by what they do; each has those of several languages.
Sentences that ask an evaluator for a mark, a rank, a label or a preference are known by their structure (`evaluator_appeals`).
What is looked for is long enough that ordinary lessons do not have it: a false alarm takes a label away.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from edgen.preferences.evaluator_appeals import find_appeal
from edgen.preferences.text_forms import Forms, read_sections

_SHOWN = 120  # characters of what was found
_INVISIBLE = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")

_SECTIONS = read_sections(Path(__file__).with_suffix(".txt"))
_LINES = Forms({"lines": _SECTIONS["lines"]}, re.MULTILINE)
_PHRASES = Forms({"phrases": _SECTIONS["phrases"]})


def judge_directed(text: str) -> str | None:
    """What in a text speaks to a judge or imitates a judge's prompt, as it was found; None if nothing does.

    Letters that only look wider, and characters that nobody sees, make no difference.
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    lines = "\n".join(text.splitlines())
    form = _first_match(_LINES.choose(lines)["lines"], lines)
    if form is None and (phrases := _PHRASES.choose(lines)["phrases"]):
        form = _first_match(phrases, " ".join(lines.split()))
    if form is not None:
        return " ".join(form[0].split())[:_SHOWN]
    appeal = find_appeal(lines)
    return None if appeal is None else " ".join(appeal.split())[:_SHOWN]


def _first_match(forms: Iterable[re.Pattern[str]], text: str) -> re.Match[str] | None:
    """Return the match that begins first; of several, the first form's."""
    found = [match for form in forms if (match := form.search(text))]
    return min(found, key=lambda match: match.start(), default=None)


def first_directed(texts: Iterable[str]) -> str | None:
    """What the first of several texts that speaks to a judge says to it."""
    return next((found for text in texts if (found := judge_directed(text)) is not None), None)
