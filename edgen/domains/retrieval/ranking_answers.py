"""An order of numbered candidates: a reply to their numbers, best first.

Numbers stand in brackets (`[3] > [1] > [2]`), or in a row with nothing but `>`, commas, brackets and white
space between them. Other text is ignored: where numbers are bracketed singly, those count; else the longest
row of two or more does. An unknown or repeated number is dropped. Candidates that are not named come last, in
their earlier order (as in RankGPT, Sun et al. 2023). A reply in which most numbers are unknown is no order.
Never raises; linear.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from edgen.plugin import Rejection, Reply
from edgen.plugin.answers import body_of
from edgen.plugin.protocols import RejectionReason
from edgen.plugin.texts import excerpt

_BRACKETED = re.compile(r"\[[ \t]{0,4}(\d{1,9})[ \t]{0,4}\]")
_NUMBER = re.compile(r"\d{1,9}")
_BETWEEN = frozenset(" \t\r\n>,;[]")


class Order(NamedTuple):
    """The places of candidates, from 0, best first: all of them. Numbers that it dropped, as unknown and as
    repeated; and how many candidates were not named."""

    places: tuple[int, ...]
    unknown: int = 0
    repeated: int = 0
    missing: int = 0


def read_order(reply: Reply, count: int) -> Order | Rejection:
    """Return the order of so many candidates; or why there is none."""
    if reply.refusal is not None:
        return Rejection(RejectionReason.REFUSED, excerpt(reply.refusal))
    text = body_of(reply.text)
    named = _find_ranked_numbers(text)
    known = [number for number in named if 1 <= number <= count]
    order = tuple(dict.fromkeys(known))
    if reply.finish_reason == "length" and len(order) < count:
        return Rejection(
            RejectionReason.TRUNCATED, f"the reply was cut off at {len(order)} of {count} candidates"
        )
    if not order or len(named) > 2 * len(known):
        said = f"it ranks nothing: {excerpt(text)}" if text.strip() else "it is empty"
        return Rejection(RejectionReason.UNREAD, said)
    rest = [number for number in range(1, count + 1) if number not in set(order)]
    places = tuple(number - 1 for number in (*order, *rest))
    return Order(places, len(named) - len(known), len(known) - len(order), len(rest))


def _find_ranked_numbers(text: str) -> list[int]:
    """Return the numbers that a reply ranks, as it has them."""
    if bracketed := _BRACKETED.findall(text):
        return [int(number) for number in bracketed]
    longest: list[int] = []
    row: list[int] = []
    end = 0
    for found in _NUMBER.finditer(text):
        if row and not _BETWEEN.issuperset(text[end : found.start()]):
            row = []
        row.append(int(found[0]))
        end = found.end()
        if len(row) > len(longest):
            longest = row
    alone = text.strip(" \t\r\n.*") == str(longest[0]) if len(longest) == 1 else bool(longest)
    return [*longest] if alone else []
