"""Sessions of exercises: the dialogue layout with the outcome of each exercise."""

from __future__ import annotations

import contextlib
from typing import Any

from edgen.domains.tutoring.exercises.model import SECTION, find_exercises
from edgen.plugin import Dialogue, RecordContents, Recorded, Space
from edgen.plugin.errors import SpaceError
from edgen.plugin.families import KindDefaults, Scenes
from edgen.plugin.protocols import SpaceRole

MOST_PICTURES = 40  # characters shown of a session


class Tutoring(KindDefaults, RecordContents, Dialogue):
    """The layout for spaces with exercises."""

    name = "tutoring"
    tags = ("tutoring", "dialogue")
    measures = (
        "actions", "action_agreement", "label_agreement", "wanted_actions", "exercises", "tutor_words",
        "reference_overlap",
        "served",
    )  # fmt: skip
    roles = (SpaceRole("Tutor", ()), SpaceRole("Student", ()))
    precedence = 50
    space_section = SECTION
    hearer = "student"
    setting = "classrooms"

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value is the record of a session."""
        outcome = record.get("outcome") if isinstance(record, dict) else None
        return isinstance(outcome, dict) and "exercises" in outcome

    def begins_anew(self, turn: Any) -> bool:
        """Return whether a turn puts an exercise: the tutor does so directly after its last response."""
        data = turn.get("data") if isinstance(turn, dict) else None
        return isinstance(data, dict) and "exercise" in data

    def scenes(self, space: Space) -> Scenes | None:
        """Return the scenes of a session: its exercises."""
        from edgen.domains.tutoring.scenes import ExerciseScenes

        return ExerciseScenes(space)

    def pictures(self, recorded: Recorded, space: Space) -> dict[int, str]:
        """Return the picture of each exercise, at the turn that puts it."""
        from edgen.domains.tutoring.exercises.drawing import draw_exercise
        from edgen.domains.tutoring.exercises.grammar import Grammar

        made = (recorded.conversation.outcome or {}).get("exercises")
        exercises = find_exercises(space)
        if exercises is None or not any(tier.draw for tier in exercises.tiers.values()):
            return {}
        grammar = Grammar(space)
        found: dict[int, str] = {}
        for place, turn in enumerate(recorded.turns):
            number = turn.data.get("exercise")
            if not isinstance(made, list) or not isinstance(number, int) or len(found) >= MOST_PICTURES:
                continue
            with contextlib.suppress(SpaceError, IndexError, KeyError, TypeError):  # the record was edited
                if picture := draw_exercise(grammar.make_exercise_of_record(recorded.scenario, made[number])):
                    found[place] = picture
        return found


TUTORING = Tutoring()
