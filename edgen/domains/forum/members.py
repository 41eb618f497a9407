"""The members of a thread: names and attributes, placeholders for names in texts, and the times of posts.

All of this follows from the job's seed and the scenario, so it is the same in all replicates.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import random
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from edgen.domains.forum.config import Actor, Forum, Member
from edgen.plugin import Scenario, Space
from edgen.plugin.protocols import SpaceRole

PLACEHOLDER = "PERSON_PLACEHOLDER"  # MSDialog's placeholder for a person's name
COMMON_USER = "Common User"  # MSDialog's word for a member without an affiliation


class PreparedForum(msgspec.Struct, frozen=True):
    """Data that all threads of a job share. `roles`: the asker comes first."""

    space: Space
    roles: tuple[SpaceRole, ...]
    category: str
    begins: dt.datetime


class ForumSeat(NamedTuple):
    """A member who may post."""

    role: SpaceRole  # role of the space
    user_id: str  # id in the records
    name: str  # name shown to the others
    named: bool  # `name` is a person's name, not a user id
    actor: Actor  # kind of member, such as a student
    affiliation: str  # affiliation shown to the others
    expertise: str | None  # hidden from the others; None without any
    weight: float  # weight in the choice of the next speaker by chance

    @property
    def use(self) -> str:
        """The name of the member's template in the job, and of its backend."""
        return self.role.name.lower()

    @property
    def shown(self) -> str:
        """The name, actor and affiliation, as shown to the others."""
        return f"{self.name} ({self.actor}, {self.affiliation})"


def make_seats(
    prepared: PreparedForum, settings: Forum, scenario: Scenario, seed: int
) -> tuple[ForumSeat, ...]:
    """Return the seats of a scenario's thread, the asker's first."""
    members = {name.lower(): member for name, member in settings.members.items()}
    seats: list[ForumSeat] = []
    for place, role in enumerate(prepared.roles):
        member = members.get(role.name.lower(), Member())
        actor: Actor = member.actor or ("Agent" if place else "User")
        digest = hashlib.blake2b(f"{seed}/{scenario.index}/{role.name}".encode(), digest_size=6).hexdigest()
        user_id, name = f"user_{digest}", resolve_value(member.name, scenario)
        belongs = resolve_value(member.affiliation, scenario)
        seats.append(
            ForumSeat(
                role,
                user_id,
                name or user_id,
                name is not None,
                actor,
                belongs or (COMMON_USER if actor == "User" else role.name),
                resolve_value(member.expertise, scenario),
                member.weight,
            )
        )
    return tuple(seats)


def resolve_value(text: str | None, scenario: Scenario) -> str | None:
    """Return the scenario's value of the dimension that a text names; any other text unchanged."""
    return None if text is None else scenario.values.get(text, text)


class NameReplacer:
    """A replacer of names: it puts the placeholder in place of a member's name or part of it, a user id, or
    `@` and a role."""

    def __init__(self, seats: Sequence[ForumSeat]) -> None:
        names = [f"@?{re.escape(seat.user_id)}" for seat in seats]
        names += [f"@{re.escape(seat.role.name)}" for seat in seats]
        for seat in seats:
            if seat.named:
                parts = sorted(
                    {part for part in seat.name.split() if len(part) > 2}, key=lambda one: (-len(one), one)
                )
                names += [f"@?{re.escape(one)}" for one in (seat.name, *parts)]
        self._names = re.compile(rf"(?<!\w)(?:{'|'.join(names)})(?!\w)")
        self._twice = re.compile(rf"{PLACEHOLDER}(?: {PLACEHOLDER})+")

    def __call__(self, text: str) -> str:
        return self._twice.sub(PLACEHOLDER, self._names.sub(PLACEHOLDER, text))


class ThreadClock:
    """The simulated clock of a thread: the moment when it begins, and the time of each post in whole seconds
    since then."""

    def __init__(self, prepared: PreparedForum, settings: Forum, scenario: Scenario, seed: int) -> None:
        self._seed = f"{seed}/{scenario.index}/clock"
        self._seconds = settings.minutes * 60
        self._begins = prepared.begins + dt.timedelta(
            seconds=self._make_random("begin").randrange(settings.days * 86_400)
        )
        self.now = 0
        self._posts = 0

    def draw_moment(self) -> int:
        """Return the time of the next post, in seconds. Waits are skewed: many short ones, a few long
        ones."""
        if self._posts:
            drawn = self._make_random(str(self._posts)).random()
            self.now += max(1, round(self._seconds * (0.1 + 3.6 * drawn * drawn * drawn)))
        self._posts += 1
        return self.now

    def format_moment(self, seconds: int = 0) -> str:
        """Return the moment after `seconds` as MSDialog writes it: 2024-09-21T04:15:54."""
        return (self._begins + dt.timedelta(seconds=seconds)).isoformat()

    def _make_random(self, what: str) -> random.Random:
        return random.Random(f"{self._seed}/{what}")  # noqa: S311 - reproducible, not secret
