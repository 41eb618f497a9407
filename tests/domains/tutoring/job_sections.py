"""Sections of docs/job.md for this domain's job keys."""

from __future__ import annotations

from edgen.domains.tutoring.config import TutoringSettings
from edgen.domains.tutoring.pool_config import PoolSettings
from tests.job_section import Section

SECTIONS = (
    Section(TutoringSettings, "tutoring", "For `protocol: tutoring`; see [tutoring](tutoring.md).", """\
tutoring: {student_turns: 20, turns_per_exercise: 10, solved_per_tier: 3, responses: 3, tutors: null, choose: judge,
           labelled_by: both, wanted: {Guess: {Hint: 3, Question: 1}, Other: {Question: 1}}, rounds: 1, sessions_per_round: null, pool: {},
           actions: {student: {Guess: tries an answer, Other: anything else}, tutor: cima_tutor}}
"""),
    Section(PoolSettings, "pool", "The key `pool` of `tutoring`, for `choose: pool`; see [tutoring](tutoring.md#rounds-and-the-pool).", """\
tutoring:
  choose: pool
  rounds: 4
  actions: {student: {Try: tries an answer, Ask: asks}, tutor: {Hint: helps, Praise: says that it is right}}
  pool:
    fallback: {Try: 0.3, Ask: 0.1}
    shared: 2
    longest: 10
    most: 10000
    templates:
      Try: ["[Hint] Not yet. {point}", "[Hint] Try again. {point}"]
      Ask: ["[Hint] {point}"]
      solved: ["[Praise] Yes, “{answer}” is right."]
""", shown=True),
)  # fmt: skip
