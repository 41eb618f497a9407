"""Sections of docs/job.md for this domain's job keys."""

from __future__ import annotations

from edgen.domains.forum.config import Forum, Member
from tests.job_section import Section

SECTIONS = (
    Section(Forum, "forum", "For `protocol: forum`; see [forum](forum.md).", """\
forum: {asker: Asker, chooser: moderator, turns: 12, silence: 4, category: product, begins: 2024-01-01, days: 90, minutes: 240,
        members: {Expert: {affiliation: MVP}}}
"""),
    Section(Member, "members", "The key `members` of `forum`, by roles of the space.", """\
forum:
  members:
    Expert: {actor: Agent, affiliation: MVP, expertise: product, name: Ada Example, weight: 2}
    Newcomer: {actor: User, affiliation: Common User, weight: 0.5}
"""),
)  # fmt: skip
