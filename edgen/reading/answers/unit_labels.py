"""The labels of numbered units: from a reply to the labels of each, in the order of the numbers.

They stand in a JSON object (`{"1": ["Hint"], "2": "Question"}`), anywhere in the reply, or one line per unit
(`1: Hint, Question`). A reply is rejected if a unit has no label, an unknown label, or several labels where
one is asked for, or if the number of units differs. Never raises; linear.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from edgen.core.text import compile_later
from edgen.core.values import Rejection, RejectionReason
from edgen.reading.answer_body import body_of, object_in
from edgen.reading.text.characters import excerpt

_LINE = compile_later(
    r"(?m)^[ \t*_(\[#-]{0,8}(?:unit |turn |no\. ?)?(\d{1,6})[ \t*_)\].]{0,8}[:：.)\]-]?[ \t]*(\S.{0,400})$"
)
_FIRST = compile_later(r"[,;|]")
_THEN = compile_later(r"\s*(?:[/+&]|\band\b)\s*")
_MARKS = " \t*_.\"'“”[](){}"

Labels = tuple[str, ...]


class LabelChoices(NamedTuple):
    """The labels that one unit can have, and whether it can have several of them."""

    labels: Collection[str]
    several: bool


def read_unit_labels(
    text: str, choices: Sequence[LabelChoices], *, finish_reason: str = "stop", refusal: str | None = None
) -> tuple[Labels, ...] | Rejection:
    """Return the labels of each unit, as they are written in its choice and in its order; or why there are
    none."""
    if refusal is not None:
        return Rejection(RejectionReason.REFUSED, excerpt(refusal))
    named = _find_labels(body_of(text))
    if finish_reason == "length" and len(named) < len(choices):
        return Rejection(RejectionReason.TRUNCATED, "the reply was cut off before the last unit")
    if not named:
        return _make_no_labels_rejection(
            f"it labels nothing: {excerpt(text)}" if text.strip() else "it is empty"
        )
    if odd := [number for number in named if not 1 <= number <= len(choices)]:
        return _make_no_labels_rejection(f"it labels a unit {odd[0]}, and there are {len(choices)}")
    found = []
    for number, choice in enumerate(choices, start=1):
        chosen = choose_labels(named.get(number), choice)
        if isinstance(chosen, str):
            return _make_no_labels_rejection(f"unit {number}: {chosen}")
        found.append(chosen)
    return tuple(found)


def choose_labels(named: Any, choice: LabelChoices, what: str = "label") -> Labels | str:
    """Return those of the labels that are named, in their order; a clause that says why not where none or an
    unknown one is, or several where there can be one. `what` labels are called."""
    listed = split_names(named, choice.labels) if isinstance(named, str) else named
    there = f"there are {', '.join(choice.labels)}"
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        return f"it names no {what} ({there})"
    known = {label.casefold(): label for label in choice.labels}
    wanted = [one for one in map(_fold_name, listed) if one]
    if not wanted:
        return f"it names no {what} ({there})"
    if unknown := [one for one in wanted if one not in known]:
        return f"it names the {what} {excerpt(unknown[0])}, which there is not ({there})"
    chosen = {known[one] for one in wanted}
    if len(chosen) > 1 and not choice.several:
        return f"it names {len(chosen)} {what}s, and one is asked for"
    return tuple(label for label in choice.labels if label in chosen)


def split_names(text: str, known: Collection[str]) -> list[str]:
    """Return the names that a text lists; what is known as a whole stays one, as Greetings/Gratitude."""
    folded = {name.casefold() for name in known}
    found = []
    for part in _FIRST.split(text):
        found += [part] if _fold_name(part) in folded else _THEN.split(part)
    return found


def _fold_name(name: str) -> str:
    return name.strip(_MARKS).casefold()


def _make_no_labels_rejection(detail: str) -> Rejection:
    return Rejection(RejectionReason.NO_LABELS, detail)


def _find_labels(text: str) -> dict[int, Any]:
    """Return the labels as the reply names them, by the number of the unit; empty if it names none."""
    value = object_in(text) or {}
    for inside in (value, *value.values()):
        if isinstance(inside, Mapping) and (found := _index_by_number(inside)):
            return found
    found = {}
    for line in _LINE.finditer(text):
        found.setdefault(int(line[1]), line[2])
    return found


def _index_by_number(value: Mapping[str, Any]) -> dict[int, Any]:
    return {int(key): said for key, said in value.items() if key.isascii() and key.isdigit() and len(key) < 7}
