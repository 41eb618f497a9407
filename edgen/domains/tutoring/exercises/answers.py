"""Check whether a text contains a right answer to an exercise.

Words are compared without case, punctuation and the form of apostrophes, and without accents where the space
ignores them; the answer may stand anywhere in what is said. Numbers are compared by value: 2/4 is 1/2, 0.5
and ½.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

from edgen.domains.tutoring.exercises.model import Exercise, Exercises

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(
    r"(?<![\w.,/])(-?\d+)\s+(\d+)/(\d+)(?![\d/])|(?<![\w.,/])(-?\d+)/(\d+)(?![\d/])"
    r"|(?<![\w.,/])-?\d+(?:[.,]\d+)?(?![\d/])"
)
MAX_SAID = 20_000  # characters that are looked at


def is_right(said: str, exercise: Exercise, exercises: Exercises) -> bool:
    """Return whether a text holds one of the right answers.

    Where the answer is a number that the question names, as in comparing two numbers, the last number counts
    only.
    """
    if exercises.tiers[exercise.tier].answer_kind == "number":
        return _has_number(said[:MAX_SAID], exercise)
    accents = exercises.accents == "needed"
    words = f" {' '.join(words_of(said[:MAX_SAID], accents=accents))} "
    wanted = (" ".join(words_of(answer, accents=accents)) for answer in exercise.answers)
    return any(one and f" {one} " in words for one in wanted)


def words_of(text: str, *, accents: bool = True) -> list[str]:
    """Return the words of a text as they are compared."""
    text = unicodedata.normalize("NFKC", text).casefold()
    if not accents and not text.isascii():
        text = "".join(
            char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn"
        )
    return _WORD.findall(text)


def numbers_of(text: str) -> list[Fraction]:
    """Return the numbers in a text by value: whole ones, decimals, fractions, mixed numbers such as 1 1/2."""
    text = unicodedata.normalize("NFKC", re.sub(r"(\d)([¼-¾⅐-⅞])", r"\1 \2", text))
    text = text.replace("\u2044", "/").replace("\u2212", "-")
    found = []
    for match in _NUMBER.finditer(text):
        whole, part, of, over, under = match.groups()
        if (of or under) is not None and int(of or under) == 0:
            continue
        if whole is not None:
            sign = -1 if whole.startswith("-") else 1
            found.append(int(whole) + sign * Fraction(int(part), int(of)))
        elif over is not None:
            found.append(Fraction(int(over), int(under)))
        else:
            found.append(Fraction(match[0].replace(",", ".")))
    return found


def _has_number(said: str, exercise: Exercise) -> bool:
    found, asked = numbers_of(said), {*numbers_of(exercise.question)}
    wanted = {number for answer in exercise.answers for number in numbers_of(answer)[:1]}
    return bool(wanted & {*found[-1:]} or (wanted - asked) & {*found})
