"""Arms in memory: outcomes are lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgen.core.values import Role, Scenario, Turn
from edgen.evaluation.comparison.arms import Arm, SettledConversation
from edgen.evaluation.sample import Sample


def said(*lines: str) -> tuple[Turn, ...]:
    """Return turns, the teacher's first."""
    roles: tuple[Role, Role] = ("Teacher", "Student")
    return tuple(Turn(roles[i % 2], line) for i, line in enumerate(lines))


def sample(scenario: int, turns: tuple[Turn, ...], **more: Any) -> Sample:
    about = Scenario(scenario, {})
    return Sample(id="x", source="x", split=None, scenario=about, turns=turns, entries=len(turns), **more)


def accepted(
    scenario: int,
    *lines: str,
    replicate: int = 0,
    calls: int = 1,
    tokens: int = 100,
    cost: float | None = None,
    **more: Any,
) -> SettledConversation:
    return SettledConversation(
        scenario=scenario,
        replicate=replicate,
        status="accepted",
        calls=calls,
        tokens=tokens,
        cost=cost,
        said=sample(scenario, said(*(lines or ("one two three", "four"))), **more),
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
    texts = {(o.scenario, o.replicate): o.said.turns for o in outcomes if o.said is not None}
    return Arm(
        label=label,
        outcomes=lambda: outcomes,
        turns=lambda scenario, replicate: texts[scenario, replicate],
        **{"scenarios": 1 + max((o.scenario for o in outcomes), default=0), **more},
    )
