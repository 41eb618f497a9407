"""The job's key `tutoring`, and the actions of utterances."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from edgen.config.label_set import LabelSet, find_label_set, make_inline_set
from edgen.domains.tutoring.pool_config import PoolSettings
from edgen.plugin.errors import Problem
from edgen.plugin.protocols import Text

# Variables of templates besides the fields that their role sees; None for fields that it does not see.
EXTRA_VARIABLES = (
    "about", "actions", "exercise_number", "labelled_by", "wanted", "question", "picture", "mistake",
)  # fmt: skip

Weight = Annotated[float, Meta(gt=0, le=1_000_000)]

# The shipped label sets of each side if a job names none.
CIMA_SETS = {"student": "cima_student", "tutor": "cima_tutor"}


@functools.cache
def read_cima_actions() -> dict[str, dict[str, str]]:
    """Return the actions of both sides in CIMA, with their definitions."""
    return {side: find_label_set(name).definitions for side, name in CIMA_SETS.items()}


class TutoringSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a session of exercises."""

    student_turns: Annotated[int, Meta(ge=1, le=1_000)] = 20
    """Student turns in a session."""
    turns_per_exercise: Annotated[int, Meta(ge=1, le=100)] = 10
    """Student turns before giving an exercise up."""
    solved_per_tier: Annotated[int, Meta(ge=1, le=1_000)] = 3
    """Solved exercises before the next tier."""
    responses: Annotated[int, Meta(ge=1, le=20)] = 3
    """Independent responses to each student turn."""
    tutors: tuple[Text, ...] | None = None
    """Backends that respond, each once; null: `tutor` gives all."""
    choose: Literal["draw", "first", "judge", "pool"] = "draw"
    """The response that continues: drawn, the first, the best by the backend `judge`, or from an earlier
    round."""
    rounds: Annotated[int, Meta(ge=1, le=1_000)] = 1
    """Rounds of sessions, for `choose: pool`."""
    sessions_per_round: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    """Scenarios of a round; null: equal shares."""
    pool: PoolSettings = PoolSettings()
    """Settings of `choose: pool`."""
    actions: dict[Text, Text | dict[Text, Text]] | None = None
    """For `student` and `tutor`: a label set or its file, or definitions by name; null: cima_student and
    cima_tutor."""
    labelled_by: Literal["speaker", "labeller", "both"] = "speaker"
    """Source of actions; with `both`, the backend `labeller`'s are in the turn's data."""
    wanted: dict[Text, Weight | dict[Text, Weight]] | None = None
    """Weights of the requested action, also by the student's action; null: the tutor chooses."""

    @property
    def named_actions(self) -> dict[str, dict[str, str]]:
        """The actions of each side, with their definitions; without a side whose label set is not read
        yet."""
        if self.actions is None:
            return read_cima_actions()
        return {side: actions for side, actions in self.actions.items() if isinstance(actions, dict)}

    @property
    def speaker_names(self) -> bool:
        """True if speakers name the actions of their own turns."""
        return self.labelled_by != "labeller"

    def make_label_set(self, side: str) -> LabelSet:
        """Return the actions of a side as a label set."""
        return make_inline_set(side, self.named_actions[side])

    @property
    def wanted_by_student(self) -> bool:
        """True if the weights of wanted actions depend on the student's action."""
        return any(isinstance(weights, dict) for weights in (self.wanted or {}).values())

    def find_weights(self, done: Sequence[str]) -> dict[str, float]:
        """Return the weights of wanted actions for responses to a turn with the actions `done`: those of the
        first action that has weights. Empty if the tutor chooses."""
        if self.wanted is None:
            return {}
        if not self.wanted_by_student:
            return {
                action: weight for action, weight in self.wanted.items() if isinstance(weight, float | int)
            }
        rows = (self.wanted.get(action) for action in done)
        return next((row for row in rows if isinstance(row, dict)), {})

    @property
    def shown_turns(self) -> int:
        """Minimum number of the student's turns about one exercise that tutors are shown."""
        longest = self.pool.longest if self.choose == "pool" else None
        return self.turns_per_exercise if longest is None else min(longest // 2, self.turns_per_exercise)

    @property
    def tutor_backends(self) -> tuple[str, ...]:
        """The backend of each response, by its name in `backends`; `tutor` if the job names no tutors."""
        return self.tutors or ("tutor",) * self.responses


def find_wanted_problems(settings: TutoringSettings) -> Iterator[Problem]:
    """Yield the problems of `wanted`: unknown actions, empty weights, weights mixed with those by the
    student's action."""
    sides, where = settings.named_actions, "$.tutoring.wanted"
    rows: dict[str, Mapping[str, Any]] = {where: settings.wanted or {}}
    if settings.wanted_by_student:
        rows = {}
        for action, row in (settings.wanted or {}).items():
            if action not in sides["student"]:
                message = f"the student has no such action (known: {', '.join(sides['student'])})"
                yield Problem(f"{where}.{action}", message)
            if not isinstance(row, dict):
                message = "expected weights of the tutor's actions, as under the student's other actions"
                yield Problem(f"{where}.{action}", message)
            else:
                rows[f"{where}.{action}"] = row
    for path, weights in rows.items():
        if not weights and settings.wanted is not None:
            yield Problem(path, "this is empty; name one action of the tutor")
        for action in weights:
            if action not in sides.get("tutor", {}):
                message = f"the tutor has no such action (known: {', '.join(sides.get('tutor', {}))})"
                yield Problem(f"{path}.{action}", message)


def find_round_problems(settings: TutoringSettings) -> Iterator[Problem]:
    """Yield rounds without a pool, a pool without rounds, a pool that does not fit the actions."""
    if settings.choose != "pool":
        if settings.rounds > 1:
            yield Problem("$.tutoring.rounds", "only `choose: pool` takes more rounds than one")
        return
    if settings.rounds == 1:
        message = "the pool of one round is empty; `choose: pool` needs two rounds or more, as in `rounds: 4`"
        yield Problem("$.tutoring.rounds", message)
    yield from settings.pool.problems(settings.named_actions, "$.tutoring.pool")
