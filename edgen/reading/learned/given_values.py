"""The place where a reply gives its probability: before, between or after the turns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from edgen.core.values import Conversation
from edgen.reading.foreign_words import ends_conversation
from edgen.reading.learned.layout import Behind
from edgen.reading.learned.texts import DIGITS, KEY, VALUE, find_unit, zero_digits
from edgen.reading.probability import parse_probability
from edgen.reading.repairs import Repair
from edgen.reading.text.characters import fold
from edgen.reading.text.marker import find_marker
from edgen.reading.text.surroundings import is_likely, mentions


def split_head(head: str, result: Conversation) -> tuple[str, str | None]:
    """Return the text before the first turn as it is, or around the probability that it gives."""
    alone = VALUE.match(head)  # at the beginning, under no label
    told = result.probability is not None and (alone is not None or mentions(head))
    values = [*VALUE.finditer(head)] if told else []
    if len(values) != 1 or parse_probability(values[0][0]) != result.probability:
        return head, None
    before, below = head[: values[0].start()], head[values[0].end() :]
    apart = below[:1] == "\n" if alone else len(before) >= KEY and below and _is_apart(before, below)
    return (before, below) if apart else (head, None)


def find_behind(rest: str, result: Conversation, before: Mapping[str, str]) -> tuple[Behind, str] | None:
    """Return the texts around the probability after the last turn, and a label before them that has only the
    end marker; None where they are not clear."""
    zeros = zero_digits(rest)
    label, role = next(((gap, role) for gap, role in before.items() if zeros.startswith(gap)), ("", None))
    if not _ends_as_read(rest, result, role):
        return None
    values = [*VALUE.finditer(rest)]
    if len(values) > 1:  # all but one say something else
        values = [value for value in values if _is_likely_line(rest, value.start(), result)][-1:]
    rest = rest[len(label) :]
    if len(values) != 1:
        # The reply gives none, or before its turns.
        clear = Repair.PROBABILITY_UNCLEAR not in result.repairs and not DIGITS.search(rest)
        return (("", rest, None), label) if clear and not is_likely(fold(rest)) else None
    start, end = (place - len(label) for place in values[0].span())
    if start <= 0 or rest[0].isalnum() or not _is_apart(rest[:start], rest[end:]):
        return None
    return (rest[:start], rest[end:], find_unit(values[0][0])), label


def find_told(gaps: Sequence[str], result: Conversation) -> re.Pattern[str] | None:
    """Return the line that gives the probability between two turns; None if there is none."""
    found = [(gap, value) for gap in gaps for value in VALUE.finditer(gap)]
    if len(found) != 1 or parse_probability(found[0][1][0]) != result.probability:
        return None
    gap, value = found[0]
    zeros = zero_digits(gap, lettered=False)
    others = {zero_digits(other, lettered=False) for other in gaps} - {zeros}
    label = next((other for other in others if zeros.endswith(other)), None)
    if label is None or value.end() > len(gap) - len(label) or not is_likely(fold(gap[: value.start()])):
        return None
    before, after = gap[: value.start()], gap[value.end() : -len(label)]
    labels = "|".join([re.escape(other).replace("0", "[0-9]") for other in others])
    told = f"{re.escape(before)}({VALUE.pattern}){re.escape(after)}(?={labels})"
    return re.compile(told) if before.strip() else None


def _is_likely_line(rest: str, at: int, result: Conversation) -> bool:
    """Return whether the probability stands at this place, after words for it."""
    value = VALUE.match(rest, at)
    line = rest[rest.rfind("\n", 0, at) + 1 : at]
    return value is not None and is_likely(fold(line)) and parse_probability(value[0]) == result.probability


def _is_apart(before: str, after: str) -> bool:
    """Return whether the texts around a probability can be no part of it."""
    ends = after[:1]
    return not (before[-1:] in tuple("0123456789.") or ends.isalnum() or ends == "%")


def _ends_as_read(rest: str, result: Conversation, labelled: str | None) -> bool:
    """Return whether the text after the last turn has an end marker where the reader found one: of the role
    that its label names, or of the last turn's."""
    marked = find_marker(rest) is not None or ends_conversation(rest)
    if result.ended_by is None:
        return not marked
    return marked and result.ended_by == (labelled or result.turns[-1].role)
