"""The job's key `tutoring`, and the actions that utterances carry."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edgen.config.backends import Text
from edgen.protocols.tutoring.pool_config import PoolSettings

# What templates may use besides what their role sees; none that it does not see is told.
EXTRA_VARIABLES = ("about", "actions", "exercise_number", "wanted", "question", "picture", "mistake")

Weight = Annotated[float, Meta(gt=0, le=1_000_000)]

# Actions of tutor and student as in CIMA (Stasaski, Kao and Hearst 2020, section 3); the words are our own.
CIMA_ACTIONS: dict[str, dict[str, str]] = {
    "student": {
        "Guess": "tries an answer or a part of it",
        "Question": "asks the tutor something",
        "Affirmation": "shows that the last turn was understood",
        "Other": "anything else",
    },
    "tutor": {
        "Question": "asks the student something",
        "Hint": "tells something that helps to find the answer",
        "Correction": "says what is wrong",
        "Confirmation": "says that an answer, or a part of it, is right",
        "Other": "anything else",
    },
}


class Tutoring(msgspec.Struct, frozen=True, kw_only=True):
    """How a session of exercises is held."""

    student_turns: Annotated[int, Meta(ge=1, le=1_000)] = 20
    """Turns of the student in a session."""
    turns_per_exercise: Annotated[int, Meta(ge=1, le=100)] = 10
    """Turns of the student after which an exercise that is not solved is given up."""
    solved_per_tier: Annotated[int, Meta(ge=1, le=1_000)] = 3
    """Exercises to be solved before the next tier's come."""
    responses: Annotated[int, Meta(ge=1, le=20)] = 3
    """Responses of the tutor to each turn of the student, none of which knows the others."""
    tutors: tuple[Text, ...] | None = None
    """The backends that respond, each once, by their names; null: all responses are the tutor's, with seeds of their own."""
    choose: Literal["draw", "first", "pool"] = "draw"
    """Which response goes on: one that is drawn, the first, or (`pool`) one that was given to such a turn in an earlier round."""
    rounds: Annotated[int, Meta(ge=1, le=1_000)] = 1
    """For `choose: pool`: rounds of sessions, each served from the responses of those before it; the first, from templates."""
    sessions_per_round: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    """Scenarios of a round; the last round has all that are left. null: all rounds have the same share of `conversations`."""
    pool: PoolSettings = PoolSettings()
    """How students are served with `choose: pool`."""
    actions: dict[Text, dict[Text, Text]] | None = None
    """What utterances do, for `student` and for `tutor`: actions by name, each with a clause that says what it is. null: as in CIMA."""
    wanted: dict[Text, Weight] | None = None
    """How often the tutor is asked for each action, relative to the others: one is drawn for each response. null: the tutor chooses."""

    @property
    def named_actions(self) -> dict[str, dict[str, str]]:
        """The actions of each side, with what they are."""
        return CIMA_ACTIONS if self.actions is None else self.actions

    @property
    def tutor_backends(self) -> tuple[str, ...]:
        """Who gives each response, as `backends` names it; `tutor` where no others are named."""
        return self.tutors or ("tutor",) * self.responses
