"""The job's key `forum`, and what its templates may use."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edgen.plugin import Text
from edgen.plugin.protocols import FENCED

MODERATOR = "moderator"  # the role whose backend chooses who speaks next
NOBODY = "nobody"  # what a moderator says where the thread is over

# What templates may use besides what their role sees of the scenario.
OF_MEMBER = ("about", "name", "role", "actor", "affiliation", "expertise")
OF_MODERATOR = ("conversation", "names", *FENCED)

Actor = Literal["User", "Agent"]


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of the forum, who plays a role of the space. A text that is the name of a dimension means the
    scenario's value of it."""

    actor: Actor | None = None
    """`User` seeks and `Agent` provides information, as in MSDialog; null: the asker is a `User`, others are
    `Agent`s."""
    affiliation: Text | None = None
    """The member's affiliation, which all see: a text or a dimension's name; null: `Common User`, for an
    agent the role's name."""
    expertise: Text | None = None
    """The member's expertise, which no other member sees: a text or a dimension's name."""
    name: Text | None = None
    """The member's name among the others: a text or a dimension's name. Records have a placeholder for it;
    null: the user id."""
    weight: Annotated[float, Meta(ge=0, le=1_000_000)] = 1
    """How often the member speaks if chance decides; 0: never, for a moderator too."""


class Forum(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of forum threads: one member asks, others answer."""

    asker: Text | None = None
    """The role that asks, follows up and marks an answer; null: the first of the space's roles."""
    members: dict[Text, Member] = {}
    """Members, by role."""
    chooser: Literal["chance", "moderator"] = "chance"
    """How the next speaker is chosen: by chance with the weights, equally in all replicates of a scenario, or
    by the backend `moderator`."""
    turns: Annotated[int, Meta(ge=2, le=1000)] = 10
    """Maximum posts of a thread."""
    silence: Annotated[int, Meta(ge=1, le=100)] = 3
    """Members in a row with nothing to say that end a thread."""
    category: Text | None = None
    """Category of a thread: a dimension's name or a text; null: the first dimension that the asker sees."""
    begins: Text = "2024-01-01"
    """First day (YYYY-MM-DD) on which a thread can begin; its clock is simulated."""
    days: Annotated[int, Meta(ge=1, le=36_500)] = 365
    """Number of days on which threads can begin."""
    minutes: Annotated[float, Meta(gt=0, le=100_000)] = 60
    """Minutes between two posts, about, on average."""
