"""The simulated answer to a request for more values of a list: invented values, one per line.

A prompt is such a request if its only user message asks for a number of new or further items, one per line.
Existing values are read from the lines of the list. New ones combine the beginning of one value with the end
of another, so they have the list's form on any subject. About one line in six repeats an existing or a new
value in slightly other words, as models do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import NamedTuple

from edgen.core.values import Message
from edgen.simulator.prompts import conversation_prompt


class ListRequest(NamedTuple):
    """A request for `number` values. `shown`: the existing values."""

    number: int
    shown: tuple[str, ...]


_COUNT = re.compile(r"\b(\d{1,4}) (?:more|new|further|additional|other)\b", re.IGNORECASE)
_LINES = re.compile(
    r"\bone (?:on each|on every|a|per) line\b|\beach on (?:its|a) (?:own )?(?:new )?line\b", re.IGNORECASE
)
_ITEM = re.compile(r"^[-*] (\S[^\n]*)$", re.MULTILINE)
_MOST = 500  # lines of one answer
_SAID_AGAIN = 1 / 6
_OWN_ENDS = 8  # the simulator's own ends count as this number of values

# The simulator's own ends, for lists with few or short values.
_DOING = (
    "building models|keeping a notebook|solving riddles|drawing comics|comparing objects|inventing examples|"
    "acting out scenes|recording short talks|sorting cards|interviewing people|planning small trips|"
    "writing letters|testing guesses|telling anecdotes|mapping ideas|making posters|tracing mistakes|timing "
    "races"
)
_HOW = (
    "with a partner|outdoors|from everyday life|against the clock|before any theory|after each step|"
    "with music|in tiny groups|on a whiteboard|out of newspapers|about local history"
)
_OWN = re.compile(rf"(?:^| )(?:{_DOING}) (?:{_HOW})", re.IGNORECASE)
_ENDS = [" ".join(words) for words in product(_DOING.split("|"), _HOW.split("|"))]
# A value is split before one of these words, if it has any.
_PARTS = re.compile(
    "a|about|across|after|and|as|at|because|before|but|by|for|from|how|if|in|into|of|on|or|otherwise|out|so|than|"
    "that|the|to|what|when|where|which|while|who|why|with|without",
    re.IGNORECASE,
)


def read(messages: Sequence[Message]) -> ListRequest | None:
    """Read the request in the messages; None if there is none."""
    asked = [message for message in messages if message.role != "system"]
    if len(asked) != 1 or asked[0].role != "user":
        return None
    text = asked[0].content
    said = _ITEM.sub("", text)
    count = _COUNT.search(said)
    if count is None or _LINES.search(said) is None or conversation_prompt.asks_for_conversation(said):
        return None
    return ListRequest(min(int(count[1]), _MOST), tuple(found[1].strip() for found in _ITEM.finditer(text)))


def answer(wish: ListRequest, rng: Random) -> str:
    """Return at most the requested number of distinct lines. Every choice is drawn from `rng`."""
    parted = [_split_value(value) for value in wish.shown]
    heads = list(dict.fromkeys(head for head, _ in parted if head)) or [""]
    tails = list(dict.fromkeys(tail for _, tail in parted if tail))
    lines: list[str] = []
    for _ in range(wish.number):
        there = lines or wish.shown
        if there and rng.random() < _SAID_AGAIN:
            said = there if rng.random() < 0.5 else wish.shown or there
            line = rng.choice(_AGAIN)(rng.choice(said))
        else:
            line = f"{rng.choice(heads)} {_choose_end(tails, rng)}".strip()
        if line not in lines:
            lines.append(line)
    return "\n".join(lines)


def _split_value(value: str) -> tuple[str, str]:
    """Split a value near its middle. The end is empty for a single word or one of the simulator's own
    ends."""
    if (own := _OWN.search(value)) is not None:
        return value[: own.start()], ""
    words = value.split()
    places = [i for i in range(1, len(words)) if _PARTS.fullmatch(words[i])] or range(1, len(words))
    place = min(places, key=lambda i: abs(i - len(words) / 2), default=len(words))
    return " ".join(words[:place]), " ".join(words[place:])


def _choose_end(tails: Sequence[str], rng: Random) -> str:
    """Return an end of one of the values, or one of the simulator's own ends."""
    if rng.random() * (len(tails) + _OWN_ENDS) < len(tails):
        return rng.choice(tails)
    return rng.choice(_ENDS)


_AGAIN: tuple[Callable[[str], str], ...] = (
    str.lower,
    str.upper,
    lambda text: f"{text}.",
    lambda text: f'"{text}"',
    lambda text: f"{text} in the" if text.endswith(",") else f"The {text}",
    lambda text: text.replace("-", " ") if "-" in text else f" {text}",
)
