"""Rules about the texts between the turns of a reply: whether they have one form, and how lines begin."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from edgen.core.text import compile_later
from edgen.reading.learned.layout import MOST_GAPS
from edgen.reading.learned.texts import make_skeleton, zero_digits
from edgen.reading.text.characters import TOKEN, TurnWords

KINDS = ('"＂', "“”„", "«»", "‹›", "「」", "『』", "()")
"""Characters that no turn may hold if the layout has one of the same kind."""
QUOTES = "".join(KINDS[:-1]) + "'‘’"
STRINGS = ('"', "'")


def is_regular(head: str, before: Mapping[str, str], gaps: Sequence[str], first: str) -> bool:
    """Return whether every turn begins and ends alike, at a line break or a quotation mark, under one label a
    role.

    Then no rule counts turns.
    """
    skeletons: dict[str, set[str]] = {}
    for gap, role in before.items():
        skeletons.setdefault(role, set()).add(make_skeleton(gap))
    if len(before) > MOST_GAPS or len(skeletons) < 2 or any(len(some) > 1 for some in skeletons.values()):
        return False
    if any(map(_is_bare, gaps)) or not _names_next(head, before, first):
        return False
    beside = [gap for gap in gaps if "\n" not in gap and gap.lstrip()[:1] not in (*STRINGS, "|")]
    if any(gap.rstrip(" *_")[-1:] != ":" for gap in beside):
        return False
    closings = {
        make_skeleton((gap.partition("\n")[0] if "\n" in gap else gap.lstrip()[:1]).strip())
        for gap in {*gaps} - {*beside}
    }
    closings = {
        TOKEN.sub("", closing) if "<" in closing or closing[:2] == "[/" else closing for closing in closings
    }
    openings = {make_skeleton(label[-1:]) if label[-1:] in QUOTES else "" for label in (head, *gaps)}
    # In JSON, a comma follows the texts that are not the last of an object.
    quoted = all(closing[:1] == '"' and not any(map(str.isalpha, closing)) for closing in closings)
    return len(openings) == 1 and (len(closings) < 2 or quoted)


def _names_next(head: str, before: Mapping[str, str], first: str) -> bool:
    """Return whether the texts between turns name who speaks next, not who spoke: the text before the first
    turn ends as those before this role's other turns do, and no other role's."""
    top = make_skeleton(head)
    for gap, role in before.items():
        if role == first:
            named = make_skeleton(gap)
            label = next((named[at:] for at in range(len(named)) if top.endswith(named[at:])), "")
            return not any(
                make_skeleton(other).endswith(label) for other, who in before.items() if who != first
            )
    return False


def _is_bare(gap: str) -> bool:
    """Return whether a label is a word or a picture without a mark, which counts only where two alternate."""
    label = gap.rpartition("\n")[2]
    marks = (unicodedata.category(mark)[0] == "P" or mark in "<>=|~+" for mark in label)
    return label.endswith(" ") and len(label.split()) == 1 and not any(marks)


def match_own_words(first: str, gaps: Iterable[str], vocabulary: TurnWords) -> re.Pattern[str] | None:
    """Return a pattern of a line that begins like one of a layout, with a word that names no speaker
    elsewhere; None if none does. `first`: the line of the first label."""
    lines = [first, *[line for gap in gaps for line in gap.split("\n")[1:]]]
    words = {word[0].lower() for line in lines if (word := TOKEN.search(line)) is not None}
    own = [
        word if word[1:] else rf"{word}(?![^\S\n]+\w)"  # not `a`, the article
        for word in sorted(words)
        if vocabulary.plain[word]
    ]
    if not own:
        return None
    return compile_later(rf"(?i)\n(?>(?:[^\w\n]|[\d_]){{0,20}})(?:{'|'.join(own)})(?![^\W\d_])")


def begins_no_line(own: re.Pattern[str] | None, word: str) -> bool:
    """Return whether a pattern of `match_own_words` matches no line that begins with a word."""
    return own is None or (
        word[:1].isalpha() and own.match(f"\n{word}") is None and own.match(f"\n{word} x") is None
    )


def is_closed(gaps: Sequence[str], rest: str, *, ended: bool) -> bool:
    """Return whether what follows the last turn begins with the words and numbers after the others, if all of
    these have some."""
    closings = {gap.partition("\n")[0] for gap in gaps}
    closing = closings.pop()
    return (
        bool(closings) or ended or not any(map(str.isalnum, closing)) or zero_digits(rest).startswith(closing)
    )


def is_mixed(labels: Sequence[str]) -> bool:
    """Return whether each turn stands in quotation marks that it does not hold, of either kind or tripled."""
    return {label[-1:] for label in labels} == {*"\"'"} or all(label.endswith('"""') for label in labels)
