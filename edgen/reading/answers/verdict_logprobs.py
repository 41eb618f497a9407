"""The certainty of a judge's verdict from log probabilities: P(1) / (P(1) + P(2)).

The formula is that of AI feedback in Lee et al. 2023 (RLAIF, arXiv 2309.00267): the probabilities of the
tokens "1" and "2" where the verdict stands, normalised over the two. The reader of verdicts finds that place:
it is the last mention of a side which, with it and every later mention swapped, gives the other verdict.
Thoughts and reasons before it, and repetitions after it, do not matter; JSON is treated like words. All
likely tokens that begin the same side there are added up. The probability of a side that no listed token
begins is unknown: between 0 and what remains of 1 after the listed tokens. So the result is a pair of bounds,
which are equal if both sides are listed.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from edgen.core.text import compile_later
from edgen.core.values import Token
from edgen.reading.answers.verdict import read_verdict
from edgen.reading.answers.verdict_prose import Choice

# Why a verdict has no probability.
Gap = Literal[
    "not_told",  # the service returned no log probabilities
    "not_spelt",  # the tokens do not spell the answer
    "not_found",  # no single place decides the verdict
    "not_listed",  # the token there begins neither side
]
_TRIES = 80  # mentions that are looked at, from the end
_DIGITS = 6
_NOISE = 1e-6  # of probabilities that a service has rounded
_MENTION = compile_later(
    r"(?<![^\W_])(?:(?<!first )(?<!second )one|two|first|second)(?![^\W_])|(?<![0-9])[12１２](?![0-9])",
    re.IGNORECASE,
)
_PAIRS = (("1", "2"), ("１", "２"), ("one", "two"), ("first", "second"))
_OTHER = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
_SIDES: dict[str, Choice] = {name: 1 if name in dict(_PAIRS) else 2 for name in _OTHER}
_DIGIT = compile_later(r"[\W_]*(?<![-−])([12１２])(?![0-9])")
_WORD = compile_later(r"[\W_]*([^\W\d_]+)")
_FEWEST = 3  # letters of a token that begins a word
# Blanks, line feeds and bytes as some services write them in tokens, and what ends an answer.
_RAW = compile_later(r"[▁Ġ]|Ċ|<0x([0-9A-F]{2})>")
_ENDS = compile_later(r"(?:\s*(?:<\|?[^<>\n|]{1,40}\|?>|</s>))+\s*\Z")


class Bounds(NamedTuple):
    """The least and the greatest possible probability, in [0, 1]; equal if it is known."""

    low: float
    high: float

    @property
    def other(self) -> Bounds:
        """The bounds of the other side's probability."""
        return Bounds(round(1 - self.high, _DIGITS), round(1 - self.low, _DIGITS))

    @property
    def preference(self) -> float | None:
        """The probability, if it is known; else the bound nearer to even, if both favour the same side; else
        None."""
        if self.low == self.high or self.low > 0.5:
            return self.low
        return self.high if self.high < 0.5 else None


def read_preference(text: str, said: Choice, tokens: Sequence[Token] | None) -> Bounds | Gap:
    """Return the bounds of verdict 1's probability against verdict 2's, for a reply read as `said`.

    Returns a Gap, the reason, if there are none.
    """
    if not tokens:
        return "not_told"
    answer = text.strip()
    spelt, start = _find(answer, tokens)
    if start < 0 and _RAW.search(spelt):
        tokens = [*map(_decode_token, tokens)]
        spelt, start = _find(answer, tokens)
    if start < 0:  # what was cleaned in the text, or is no part of it
        start, answer = 0, spelt
        if read_verdict(spelt) != said:
            return "not_spelt"
    mention = find_verdict(answer, said)
    if mention is None:
        return "not_found"
    return _compute_share(tokens, start + mention.start(), said, is_word=mention[0].isalpha())


def _find(answer: str, tokens: Sequence[Token]) -> tuple[str, int]:
    """Return what tokens spell, and where the answer stands in it; -1 if it does not."""
    spelt = "".join(token.text for token in tokens)
    return spelt, _ENDS.sub("", spelt).rfind(answer)


def find_verdict(text: str, said: Choice) -> re.Match[str] | None:
    """Return the mention of a side that decides the verdict; None where there is no such one."""
    mentions = list(itertools.islice(reversed([*_MENTION.finditer(text)]), _TRIES))
    for mention in mentions:
        turned = text[: mention.start()] + _MENTION.sub(_turn_side, text[mention.start() :])
        if _SIDES[mention[0].lower()] == said and read_verdict(turned) == 3 - said:
            return mention
    return None


def _turn_side(mention: re.Match[str]) -> str:
    """Return the other side, in the same letters."""
    word = mention[0]
    other = _OTHER[word.lower()]
    return other.upper() if word.isupper() else other.capitalize() if word[0].isupper() else other


def _compute_share(tokens: Sequence[Token], place: int, said: Choice, *, is_word: bool) -> Bounds | Gap:
    """Return the share of verdict 1 in the probability of both, at the token around `place`."""
    ends = itertools.accumulate(len(token.text) for token in tokens)
    token, end = next(pair for pair in zip(tokens, ends, strict=True) if place < pair[1])
    before = token.text[: place - (end - len(token.text))]
    found = {1: 0.0, 2: 0.0}
    rest = 1.0
    for text, logprob in _list_likely_tokens(token):
        rest -= math.exp(logprob)
        if (choice := _begins(text, before, is_word=is_word)) is not None:
            found[choice] += math.exp(logprob)
    if not found[said]:
        return "not_listed"
    # Rounded numbers of a service need not add up to 1; and what it says has some probability.
    unknown = max(rest, 0.0) if rest > _NOISE else 0.0
    one, two = ((found[side], found[side] or unknown) for side in (1, 2))
    low, high = (round(a / (a + b), _DIGITS) for a, b in ((one[0], two[1]), (one[1], two[0])))
    return Bounds(low, high)


def _list_likely_tokens(token: Token) -> Iterator[tuple[str, float]]:
    """Yield (text, log probability) of the tokens that may stand in a token's place, itself first."""
    same = [
        (abs(logprob - token.logprob), place)
        for place, (text, logprob) in enumerate(token.top)
        if text == token.text
    ]
    own = min(same)[1] if same else -1  # other tokens may be spelt the same
    yield token.text, token.logprob
    yield from (other for place, other in enumerate(token.top) if place != own)


def _decode_token(token: Token) -> Token:
    """Return a token with the characters that its raw text stands for."""
    return Token(
        _decode_raw_text(token.text),
        token.logprob,
        tuple((_decode_raw_text(text), logprob) for text, logprob in token.top),
    )


def _decode_raw_text(text: str) -> str:
    return _RAW.sub(lambda mark: chr(int(mark[1], 16)) if mark[1] else "\n" if mark[0] == "Ċ" else " ", text)


def _begins(text: str, before: str, *, is_word: bool) -> Choice | None:
    """Return the side that a token begins; None if it begins none or could begin either.

    `before` is the part of the token in the reply that stands before the verdict; the token must begin with
    it if it holds words.
    """
    if any(map(str.isalnum, before)):
        if not text.startswith(before):
            return None
        text = text[len(before) :]
    if (digit := _DIGIT.match(text)) is not None:
        return _SIDES[digit[1]]
    word = _WORD.match(text)
    if not is_word or word is None or len(word[1]) < _FEWEST:
        return None
    sides = {side for name, side in _SIDES.items() if name.startswith(word[1].lower())}
    return sides.pop() if len(sides) == 1 else None
