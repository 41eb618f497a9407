"""The scene of each turn of a session: its exercise, made again by the grammar, and the speaker's knowledge
of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgen.domains.tutoring.exercises.grammar import Grammar
from edgen.domains.tutoring.exercises.model import Exercise
from edgen.domains.tutoring.served_turns import list_responses
from edgen.plugin import Scenario, Space, Turn
from edgen.plugin.families import Role, Scenes, TurnScene
from edgen.plugin.texts import without_pictures


class ExerciseScenes(Scenes):
    """The scenes of a session: each exercise from its question on is a scene."""

    note = (
        "A prompt holds the turns about the current exercise, not about earlier ones; its first message ends "
        "with what the trained side knows of the exercise. The columns of concepts are those of that "
        "exercise."
    )

    def __init__(self, space: Space) -> None:
        self._grammar = Grammar(space)
        self._sees = {role.name: role.sees for role in space.roles}

    def of(
        self, role: Role, scenario: Scenario, turns: Sequence[Turn], outcome: Mapping[str, Any] | None
    ) -> dict[int, TurnScene]:
        """Return the scene of each turn of the role that answers another turn; questions of exercises answer
        none."""
        exercises = (outcome or {}).get("exercises") or []
        found: dict[int, TurnScene] = {}
        scene: TurnScene | None = None
        for at, turn in enumerate(turns):
            if "exercise" in turn.data:
                scene = self._make_scene(at, role, scenario, exercises[turn.data["exercise"]])
            elif turn.role == role and scene is not None:
                found[at] = scene
        return found

    def responses(self, turn: Turn) -> tuple[Turn, ...]:
        """Return the responses to the turn before this one. A turn that was served from elsewhere is not one
        of them."""
        return list_responses(turn)

    def _make_scene(self, begin: int, role: Role, scenario: Scenario, one: Mapping[str, Any]) -> TurnScene:
        values = {**scenario.values, **one["concepts"]}
        entries = {name: self._grammar.space[name].find_entry(value) for name, value in values.items()}
        fields = {name: dict(entry.fields) for name, entry in entries.items() if entry.fields}
        made = self._grammar.make_exercise(one["tier"], entries)
        return TurnScene(
            begin,
            Scenario(scenario.index, values, fields),
            "\n".join(self._list_brief_lines(made, self._sees[role])),
        )

    @staticmethod
    def _list_brief_lines(made: Exercise, sees: Sequence[str]) -> Iterator[str]:
        """Yield the lines about an exercise for a role with these fields, without the question."""
        if "picture" in sees and made.picture is not None:
            yield f"The picture shows {without_pictures(made.picture)}."
        if "answer" in sees:
            yield f"The right answer: {made.answer}"
        if "mistake" in sees and made.mistake is not None:
            yield f"A wrong answer to it: {made.mistake}"
        if "points" in sees and made.points:
            yield "What may be told:"
            yield from (f"- {point}" for point in made.points)
