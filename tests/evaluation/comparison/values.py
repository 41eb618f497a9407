"""Arms in memory: outcomes are lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgen.core.values import Role, Turn
from edgen.evaluation.comparison.arms import Arm, SettledConversation


def said(*lines: str) -> tuple[Turn, ...]:
    """Turns, the teacher's first."""
    roles: tuple[Role, Role] = ("Teacher", "Student")
    return tuple(Turn(roles[i % 2], line) for i, line in enumerate(lines))


def accepted(scenario: int, *lines: str, replicate: int = 0, **more: Any) -> SettledConversation:
    return SettledConversation(
        scenario=scenario,
        replicate=replicate,
        status="accepted",
        **{"calls": 1, "tokens": 100, "turns": said(*(lines or ("one two three", "four"))), **more},
    )


def refused(scenario: int, replicate: int = 0, **more: Any) -> SettledConversation:
    return SettledConversation(
        scenario=scenario,
        replicate=replicate,
        status="rejected",
        reason="refused",
        **{"calls": 1, "tokens": 100, **more},
    )


def arm(label: str, outcomes: Sequence[SettledConversation], **more: Any) -> Arm:
    texts = {(o.scenario, o.replicate): o.turns for o in outcomes}
    return Arm(
        label=label,
        outcomes=lambda: outcomes,
        turns=lambda scenario, replicate: texts[scenario, replicate],
        **{"scenarios": 1 + max((o.scenario for o in outcomes), default=0), **more},
    )
