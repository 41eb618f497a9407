"""Reasons for rejections: edgen's own, and those that a protocol declares.

A reason is a short name in ledgers and counts. A protocol lists its own under `reasons`, each with a clause
that explains it; an undeclared one is shown by its name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from edgen.core import registry
from edgen.core.values import RejectionReason, is_reason_name


class DeclaredReason(msgspec.Struct, frozen=True, kw_only=True):
    """A reason for rejections, with the texts about it."""

    code: str
    """Its name in ledgers and counts: up to 40 lower-case letters, digits and _, a letter first."""
    says: str
    """A clause that explains it."""
    advice: str = ""
    """A sentence with advice for a run that stops for this reason; empty: the advice for unreadable
    answers."""
    personal: str = ""
    """A clause for a person whose answer was rejected; empty: the reason's name in words."""


_OWN = (
    DeclaredReason(
        code=RejectionReason.EMPTY,
        says="the answer has only white space",
        advice="The model says nothing: give it room with `max_tokens`, and look at its chat template.",
    ),
    DeclaredReason(
        code=RejectionReason.REFUSED,
        says="the model declined, or the service blocked the answer",
        advice="The model or its service declines: reword the template, or take another model.",
    ),
    DeclaredReason(
        code=RejectionReason.TRUNCATED,
        says="a token limit cut the answer off",
        advice="Answers are cut off: raise `max_tokens` of the backend, or ask for less in the template.",
    ),
    DeclaredReason(code=RejectionReason.NO_TURNS, says="no role speaks in any line"),
    DeclaredReason(code=RejectionReason.ONE_SPEAKER, says="only one side speaks"),
    DeclaredReason(code=RejectionReason.TOO_SHORT, says="the conversation has fewer than two turns"),
    DeclaredReason(code=RejectionReason.INVALID, says="the record breaks its schema"),
    DeclaredReason(
        code=RejectionReason.SPEAKS_FOR_OTHER,
        says="a role also writes another role's lines",
        personal="it speaks for the other side",
    ),
    DeclaredReason(
        code=RejectionReason.TWO_TURNS,
        says="one reply has more than one turn",
        personal="it says more than one turn",
    ),
    DeclaredReason(
        code=RejectionReason.LEAKED_SECRET,
        says="a role says word for word what it cannot know",
        advice="A side says what it cannot know: show it less, or take `leaked_secret: flag`.",
        personal="it says word for word what only your card says",
    ),
    DeclaredReason(
        code=RejectionReason.LOOP,
        says="a role repeats itself",
        advice="A side repeats itself: raise the temperature, or take a larger model.",
        personal="it repeats what was said before",
    ),
    DeclaredReason(
        code=RejectionReason.PLACEHOLDER,
        says="the answer has dots or a placeholder instead of a text",
        advice="The model copies the form of its answer: send it as a schema (`forms: schema`), or take a "
        "larger model.",
        personal="it has dots or a placeholder instead of a text",
    ),
    DeclaredReason(
        code=RejectionReason.ECHO,
        says="the answer repeats its prompt, or the previous turn word for word",
        advice="The model copies its prompt: reword the template, or take a larger model.",
        personal="it repeats the words before it",
    ),
    DeclaredReason(
        code=RejectionReason.NO_BRANCH, says="the conversation ends before the turn at which it branches"
    ),
    DeclaredReason(
        code=RejectionReason.NO_LABELS,
        says="units have no labels, or unknown ones",
        advice="Conversations are not labelled: see the answers of the backend annotator, and its "
        "`max_tokens`.",
    ),
    DeclaredReason(
        code=RejectionReason.GATE,
        says="the conversation fails a gate of the job",
        advice="No conversation passes: loosen `gates` of the job, or change the template so that some pass.",
    ),
    DeclaredReason(code=RejectionReason.UNREAD, says="the answer cannot be read"),
    DeclaredReason(code=RejectionReason.IDENTICAL, says="both sides are equal, so there is nothing to judge"),
    DeclaredReason(
        code=RejectionReason.NO_RESPONSES,
        says="the two do not part in two turns of the role that is compared",
    ),
)
REASONS: Mapping[str, DeclaredReason] = {str(one.code): one for one in _OWN}


def list_reason_flaws(reasons: object) -> list[str]:
    """Return the flaws of the reasons that a protocol declares, as clauses."""
    if not isinstance(reasons, tuple) or not all(isinstance(one, DeclaredReason) for one in reasons):
        return [f"has `reasons` that are not a tuple of DeclaredReason: {reasons!r}"]
    flaws = []
    for one in reasons:
        if not is_reason_name(one.code):
            flaws.append(f"declares a reason that is not a short lower-case name: {one.code!r}")
        elif one.code in REASONS:
            flaws.append(f"declares the reason {one.code}, which is edgen's own; choose another name")
        elif not (isinstance(one.says, str) and one.says.strip() and one.says.isprintable()):
            flaws.append(f"declares the reason {one.code} without a clause in `says` that explains it")
    return flaws


def find_reason(code: str, protocol: str = "") -> DeclaredReason | None:
    """Return the texts about a reason in ledgers and counts: edgen's own, or declared by the protocol. None
    for an unknown reason."""
    name = code.partition(":")[0]
    if name in REASONS or not protocol:
        return REASONS.get(name)
    try:
        declared: tuple[DeclaredReason, ...] = registry.find("protocol", protocol).reasons
    except registry.PluginError:  # the protocol that made the run is not installed
        return None
    return next((one for one in declared if one.code == name), None)


def explain_own_reasons(codes: Collection[str], protocol: str) -> dict[str, str]:
    """Return the clauses of the reasons that the protocol itself declares, by name."""
    others = dict.fromkeys(name for code in codes if (name := code.partition(":")[0]) not in REASONS)
    found = {name: find_reason(name, protocol) for name in others}
    return {name: one.says for name, one in found.items() if one is not None}
