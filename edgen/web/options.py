"""Options of people's tasks, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from edgen.core.options import declare_unit, option


class PeopleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of people's tasks."""

    vote: Annotated[bool, option("Have people vote on the pairs of a run, or between several.")] = False
    label: Annotated[
        str | None,
        option(
            "Have people label by this label set: a shipped one's name, or a file.",
            metavar="SET",
            completes="label_sets",
        ),
    ] = None
    unit: Annotated[Literal["turn", "conversation"] | None, declare_unit("With --label only.")] = None
    invite: Annotated[
        str | None,
        option("Invite these people; prints a link for each, once.", metavar="NAME,NAME"),
    ] = None
    per_unit: Annotated[
        int | None,
        option("People per pair or unit.  [default: 1]", metavar="K", ge=1),
    ] = None
    guidelines: Annotated[
        Path | None, option("A text file to show next to each pair or unit.", metavar="FILE")
    ] = None
    known: Annotated[
        Path | None,
        option("Known answers that check attention: votes or labels.", metavar="FILE"),
    ] = None
    check_every: Annotated[
        int | None,
        option(
            "Check attention after every N answers, by a known or an earlier one; 0: never.  [default: 10]",
            metavar="N",
            ge=0,
        ),
    ] = None

    @property
    def sets_up(self) -> bool:
        """True if a task is set up."""
        return self != PeopleOptions()
