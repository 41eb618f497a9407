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
    """Who a role of the space is in the forum. A text that is the name of a dimension means the scenario's
    value of it."""

    actor: Actor | None = None
    """Who seeks or who provides information, as MSDialog has it; null: the asker is a `User`, everybody else
    an `Agent`."""
    affiliation: Text | None = None
    """Whom one belongs to, as all others see: a text, or the name of a dimension; null: `Common User`, and
    the role's name for an agent."""
    expertise: Text | None = None
    """What one knows well: a text, or the name of a dimension. It is told to nobody else."""
    name: Text | None = None
    """What one is called by the others: a text, or the name of a dimension. Records have a placeholder for
    it; null: the user id."""
    weight: Annotated[float, Meta(ge=0, le=1_000_000)] = 1
    """How often one speaks, where chance decides; 0: never, whoever decides."""


class Forum(msgspec.Struct, frozen=True, kw_only=True):
    """How a thread of a forum comes about: one asks, others answer."""

    asker: Text | None = None
    """The role that asks, follows up and marks an answer; null: the first of the space's roles."""
    members: dict[Text, Member] = {}
    """Who the roles are, by their names."""
    chooser: Literal["chance", "moderator"] = "chance"
    """Who says who speaks next: chance by the weights, the same for all replicates of a scenario; or the
    backend `moderator`."""
    turns: Annotated[int, Meta(ge=2, le=1000)] = 10
    """Posts after which a thread ends by itself."""
    silence: Annotated[int, Meta(ge=1, le=100)] = 3
    """A thread ends when so many in a row had nothing to say."""
    category: Text | None = None
    """The category of a thread: the name of a dimension, or a text; null: the first dimension that the asker
    sees."""
    begins: Text = "2024-01-01"
    """The first day on which a thread can begin, as YYYY-MM-DD: its clock is simulated."""
    days: Annotated[int, Meta(ge=1, le=36_500)] = 365
    """How many days there are on which threads begin."""
    minutes: Annotated[float, Meta(gt=0, le=100_000)] = 60
    """Minutes between two posts, about on average."""
