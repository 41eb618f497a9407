"""The job's key `forum`, and the variables of its templates."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edgen.plugin.protocols import FENCED, Text

MODERATOR = "moderator"  # the role whose backend chooses the next speaker
NOBODY = "nobody"  # the moderator's answer that ends a thread

# Variables of templates besides the values of the scenario that the role sees.
OF_MEMBER = ("about", "name", "role", "actor", "affiliation", "expertise")
OF_MODERATOR = ("conversation", "names", *FENCED)

Actor = Literal["User", "Agent"]


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of the forum, who plays a role of the space. A text that is the name of a dimension means the
    scenario's value of it."""

    actor: Actor | None = None
    """A `User` seeks, an `Agent` provides information; null: the asker is the `User`."""
    affiliation: Text | None = None
    """Public: a text or a dimension; null: `Common User`, for an agent the role's name."""
    expertise: Text | None = None
    """Hidden from other members: a text or a dimension."""
    name: Text | None = None
    """Name among members, never in records: a text or a dimension; null: the user id."""
    weight: Annotated[float, Meta(ge=0, le=1_000_000)] = 1
    """Weight of speaking by chance; 0: never speaks."""


class Forum(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of forum threads: one member asks, others answer."""

    asker: Text | None = None
    """The role that asks; null: the space's first."""
    members: dict[Text, Member] = {}
    """Members, by role."""
    chooser: Literal["chance", "moderator"] = "chance"
    """Choice of the next speaker: by chance and weights, or by the backend `moderator`."""
    turns: Annotated[int, Meta(ge=2, le=1000)] = 10
    """Maximum posts."""
    silence: Annotated[int, Meta(ge=1, le=100)] = 3
    """Silent members in a row that end a thread."""
    category: Text | None = None
    """A dimension or a text; null: the first dimension that the asker sees."""
    begins: Text = "2024-01-01"
    """First day on which a thread can begin."""
    days: Annotated[int, Meta(ge=1, le=36_500)] = 365
    """Days on which threads can begin."""
    minutes: Annotated[float, Meta(gt=0, le=100_000)] = 60
    """Mean minutes between two posts."""
