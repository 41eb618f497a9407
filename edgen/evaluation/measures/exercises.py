"""How exercises go: how many are solved, in how many turns, whether that gets fewer, and what tutors give away.

Learning is the student's turns for the last solved exercise less those for the first, of sessions that solve two or more:
below 0, the student became quicker. A response gives the answer away where it holds a right answer before the exercise is
solved. Intervals are clustered by scenario. Memory: some bytes an exercise.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from edgen.core.text import number, quantity
from edgen.core.values import Turn
from edgen.evaluation.figures import (
    WHOLE_NUMBERS,
    Axis,
    Block,
    histograms_picture,
    interval_of,
    intervals_picture,
    mean_of,
    series_colour,
)
from edgen.evaluation.measure import (
    ArmResult,
    Compared,
    Measure,
    Shared,
    figure_kinds,
    histograms_of,
    share_intervals,
)
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import SUMMARY_HEAD, row, share_with_interval, summary, with_interval
from edgen.families.tutoring.served import responses_to
from edgen.space import Space
from edgen.space.exercises.answers import is_right
from edgen.space.exercises.model import Exercise, Exercises, Tier
from edgen.stats.distributions import Distribution, summarize_counts
from edgen.stats.intervals import Estimate, ShareCount, average


class ExercisesFound(msgspec.Struct, frozen=True, kw_only=True):
    """`exercises` begun; `solved` the share of them; `turns` of the student for each that was solved; `at_once`: the share
    of the solved that the student's first turn solved; `learning` in turns, over sessions with two solved or more; `revealed`: the share of tutors' responses that give the answer away; `flagged`:
    the share of them that a student called nonsense, of those that went on."""

    exercises: int
    solved: Estimate | None
    turns: Distribution
    at_once: Estimate | None
    learning: Estimate | None
    revealed: Estimate | None
    flagged: Estimate | None


_COMPARED = (
    Compared(
        name="exercises_solved", title="exercises solved", kind="share", top="solved", bottom="exercises",
        over="exercises", definition="Exercises that are solved, of those begun.",
    ),
    Compared(
        name="turns_to_solve", title="turns to solve one", kind="number", top="turns", bottom="solved",
        over="solved exercises", definition="The student's turns for an exercise that is solved.",
    ),
    Compared(
        name="learning", title="learning, last - first", kind="number", top="learning", bottom="learners",
        over="sessions with two solved exercises",
        definition="The student's turns for the last solved exercise of a session less those for the first; below 0 the "
        "student became quicker (CIMA: Stasaski, Kao and Hearst 2020, section 4).",
    ),
    Compared(
        name="revealed", title="answers given away", kind="share", top="revealed", bottom="responses",
        over="responses before the exercise is solved",
        definition="Responses of tutors, all of a turn, that hold a right answer before the exercise is solved (related "
        "to the telling of Macina et al. 2023, arXiv 2305.14536).",
    ),
    Compared(
        name="nonsense", title="called nonsense", kind="share", top="flagged", bottom="went_on",
        over="responses that went on", definition="Responses that went on and that the student called nonsense.",
    ),
)  # fmt: skip


class ExercisesMeasure(Measure[ExercisesFound]):
    name = "exercises"
    definition = (
        "Exercises begun, the share that is solved, the student's turns for each that is, and the share of these that its first turn solved, as a student does who was told; learning: turns for the last "
        "solved exercise of a session less those for the first (CIMA: Stasaski, Kao and Hearst 2020, section 4); the share "
        "of tutors' responses, all of a turn, that hold a right answer before the exercise is solved (related to the telling "
        "of Macina et al. 2023, arXiv 2305.14536); and of those that went on, the share that the student called nonsense."
    )
    order = 11
    section = "behaviour"
    compares = _COMPARED
    figures = figure_kinds("exercises", "solved", "revealed", "responses")
    nothing = "The records do not say what became of exercises."

    def start(self, shared: Shared) -> ExercisesCount:
        space = shared.data.space
        return ExercisesCount(None if space is None else space.exercises)

    def sums(self, sample: Sample, space: Space) -> Iterator[tuple[str, float]]:
        """What a session adds up to; learning where it solves two exercises."""
        found = count_session(sample.outcome, sample.turns, space.exercises)
        if found is None:
            return
        yield from (
            ("exercises", found.exercises),
            ("solved", len(found.solved)),
            ("turns", sum(found.solved)),
        )
        yield from (("revealed", found.revealed), ("responses", found.responses))
        yield from (("flagged", found.flagged), ("went_on", found.went_on))
        if found.learning is not None:
            yield from (("learning", found.learning), ("learners", 1))

    def lines(self, value: ExercisesFound) -> Iterator[str]:
        if not value.exercises:
            return
        yield row(
            "exercises",
            f"{quantity(value.exercises, 'exercise')}, {share_with_interval(value.solved)} solved",
        )
        yield SUMMARY_HEAD
        yield summary("turns to solve one", value.turns)
        yield row("by the first turn", f"{share_with_interval(value.at_once)} of those solved")
        if value.learning is not None:
            yield row("learning, last - first", f"{with_interval(value.learning, '+.2f')} turns")
        yield row("gives the answer away", f"{share_with_interval(value.revealed)} of responses")
        yield row("called nonsense", f"{share_with_interval(value.flagged)} of those that went on")

    def blocks(self, found: Sequence[ArmResult[ExercisesFound]]) -> Iterator[Block]:
        turns = histograms_of(found, lambda value: value.turns)
        yield from histograms_picture(
            "turns-to-solve", "Turns to solve an exercise", turns, WHOLE_NUMBERS,
            "Look for a pile at one: exercises that are too easy, or tutors who tell.",
        )  # fmt: skip
        learning = [
            interval_of(one.name, one.value.learning, mean_of(one.value.learning), series_colour(place))
            for place, one in enumerate(found)
            if one.value.learning is not None
        ]
        yield from intervals_picture(
            "learning", "Learning: turns for the last solved exercise less those for the first", learning,
            "Below 0 the student became quicker.", Axis(tick=number),
        )  # fmt: skip
        shares = [
            ("Exercises solved", lambda value: value.solved),
            ("Gives the answer away", lambda value: value.revealed),
        ]
        yield from intervals_picture(
            "exercises", "Exercises solved, answers given away", share_intervals(found, shares),
            "Look for a tutor who tells: its students solve more and learn less.",
        )  # fmt: skip


class ExercisesCount:
    def __init__(self, exercises: Exercises | None) -> None:
        self._exercises = exercises
        self._turns: Counter[int] = Counter()
        self._solved, self._at_once = ShareCount(), ShareCount()
        self._revealed, self._flagged = ShareCount(), ShareCount()
        self._deltas, self._delta_scenarios = array("d"), array("q")

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        found = count_session(sample.outcome, sample.turns, self._exercises)
        if found is None:
            return
        index = sample.scenario.index
        self._solved.add(index, len(found.solved), found.exercises)
        self._turns.update(found.solved)
        self._at_once.add(index, found.solved.count(1), len(found.solved))
        if found.learning is not None:
            self._deltas.append(found.learning)
            self._delta_scenarios.append(index)
        self._revealed.add(index, found.revealed, found.responses)
        self._flagged.add(index, found.flagged, found.went_on)

    def result(self) -> ExercisesFound:
        return ExercisesFound(
            exercises=self._solved.of,
            solved=self._solved.result(),
            turns=summarize_counts(self._turns),
            at_once=self._at_once.result(),
            learning=average(np.array(self._deltas), np.array(self._delta_scenarios)),
            revealed=self._revealed.result(),
            flagged=self._flagged.result(),
        )


class SessionCounts(msgspec.Struct, kw_only=True):
    """One session. `solved`: the student's turns for each exercise that was solved; `revealed` of the `responses` to
    exercises that were not solved yet give the answer away; `flagged` of those that `went_on` were called nonsense."""

    exercises: int
    solved: list[int]
    revealed: int = 0
    responses: int = 0
    flagged: int = 0
    went_on: int = 0

    @property
    def learning(self) -> int | None:
        """Turns for the last solved exercise less those for the first, where two were solved."""
        return self.solved[-1] - self.solved[0] if len(self.solved) > 1 else None


def count_session(
    outcome: Mapping[str, Any] | None, turns: Iterable[Turn], rules: Exercises | None
) -> SessionCounts | None:
    """What became of a session's exercises, None where its outcome does not say. `rules` are those of its space, by
    which answers are compared; without them answers are compared as words."""
    found = (outcome or {}).get("exercises")
    if not isinstance(found, list) or not found:
        return None
    known = [one for one in found if isinstance(one, dict)]
    solved = [one["turns"] for one in known if one.get("solved") and isinstance(one.get("turns"), int)]
    counts = SessionCounts(exercises=len(known), solved=solved)
    current, compared_by, done = None, rules, False
    for turn in turns:
        if "exercise" in turn.data:
            current, compared_by = _exercise(known, turn.data["exercise"], rules)
            done = False
        elif turn.data.get("solved"):
            done = True
        elif turn.labels and turn.role == "Tutor":
            counts.went_on += 1
            counts.flagged += turn.data.get("nonsense") is True
            if current is not None and compared_by is not None and not done:
                said = [one.text for one in responses_to(turn)]
                counts.responses += len(said)
                counts.revealed += sum(is_right(text, current, compared_by) for text in said)
    return counts


def _exercise(
    exercises: Sequence[Mapping[str, Any]], number: Any, rules: Exercises | None
) -> tuple[Exercise | None, Exercises | None]:
    """The exercise of that number, and the rules by which its answers are compared: the space's, else as words."""
    if not isinstance(number, int) or not 0 <= number < len(exercises):
        return None, None
    one = exercises[number]
    answers = tuple(answer for answer in one.get("answers") or () if isinstance(answer, str))
    tier = str(one.get("tier"))
    made = Exercise(tier=tier, concepts={}, question=str(one.get("question")), answers=answers)
    if rules is None or tier not in rules.tiers:
        rules = Exercises({tier: Tier(concepts=(), question="", answers=answers)}, accents="ignored")
    return (made, rules) if answers else (None, None)


MEASURE = ExercisesMeasure()
