"""The labeller of a session: it labels the student's last turn and all responses to it, in one request.

Its labels replace those of the speakers, or are stored next to them, as `labeller` in a turn's data.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Literal

import msgspec

from edgen.domains.tutoring.config import TutoringSettings
from edgen.domains.tutoring.served_turns import LABELLER
from edgen.plugin import Address, Prompting, Rejection, Reply, Request, Rules, Turn
from edgen.protocols.labelling import Unit, label_units

UNLABELLED = "unlabelled"  # a flag of a conversation
LabelledBy = Literal["speaker", "labeller", "both"]


def mark_units_to_label(
    turns: Sequence[Turn], responses: Sequence[Turn], settings: TutoringSettings
) -> list[Turn | Unit]:
    """Return the session so far and the responses to its last turn, with the last turn and the responses as
    units to label."""
    several, tutor = len(responses) > 1, settings.make_label_set("tutor")
    return [
        *turns[:-1],
        Unit(settings.make_label_set("student"), turns[-1]),
        *(Unit(tutor, response, alternative=several) for response in responses),
    ]


def label_turns(
    shown: Sequence[Turn | Unit], by: LabelledBy, address: Address, prompt: Prompting, rules: Rules
) -> Generator[Request, Reply, list[Turn] | None]:
    """Yield the requests to the labeller; return the units' turns with their labels, in order, None if its
    answers are unreadable."""
    found = yield from label_units(shown, address, prompt, rules, LABELLER)
    if isinstance(found, Rejection):
        return None
    turns = [one.turn for one in shown if isinstance(one, Unit) and one.turn is not None]
    return [
        msgspec.structs.replace(turn, labels=labels)
        if by == "labeller"
        else msgspec.structs.replace(turn, data={**turn.data, LABELLER: list(labels)})
        for turn, labels in zip(turns, found, strict=True)
    ]
