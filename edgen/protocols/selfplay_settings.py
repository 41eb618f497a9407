"""Settings of talking agents, and the order in which they speak."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edgen.config.backends import Text
from edgen.core.forms import form, probability
from edgen.core.values import Role

CLOSING_STEP = 1000  # the step after those of turns
CLOSING = form(probability=probability())
MOST_TURNS = 2_000  # turns among which a branching turn is searched

Weight = Annotated[float, Meta(gt=0, le=1_000_000)]


class Selfplay(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of talking agents.

    `closing` is the role that states the probability of understanding at the end. A detector with "reject"
    has the turn retried; one with "flag" keeps it with a flag.
    """

    first: Text | None = None
    """First speaker; null: the space's first role."""
    order: tuple[Text, ...] | dict[str, Weight] | None = None
    """A list is repeated; weights by role: drawn, no role twice in a row; null: in turn."""
    max_turns: Annotated[int, Meta(ge=2, le=1000)] = 20
    """Maximum turns."""
    closing: Text | None = None
    """Role that finally states a probability, such as that the student understood, or `judge`; null: none."""
    leaked_secret: Literal["reject", "flag"] = "reject"  # noqa: S105 - no password
    """A turn that reveals a secret: `reject` retries it, `flag` flags it."""
    loop: Literal["reject", "flag"] = "reject"
    """A turn that repeats an earlier one, likewise."""

    def speakers(self, roles: Sequence[Role], seed: int = 0, scenario: int = 0) -> Iterator[Role]:
        """Yield the speakers in order, without end. The order is the same for all replicates of a
        scenario."""
        named = {role.lower(): role for role in roles}
        first = named.get((self.first or "").lower())
        if isinstance(self.order, dict):
            weights = {named[role.lower()]: weight for role, weight in self.order.items()}
            yield from _draw_speakers(weights, first, f"{seed}/{scenario}/order")
            return
        order = [named[role.lower()] for role in self.order or roles]
        start = order.index(first) if first else 0
        yield from itertools.cycle(order[start:] + order[:start])


def _draw_speakers(weights: Mapping[Role, float], first: Role | None, seed: str) -> Iterator[Role]:
    last = None
    for number in itertools.count():
        others = {role: weight for role, weight in weights.items() if role != last}
        rng = random.Random(f"{seed}/{number}")  # noqa: S311 - reproducible, not secret
        last = first if first and not number else rng.choices([*others], [*others.values()])[0]
        yield last
