"""How exercises go: how many are solved, in how many turns, whether that gets fewer, and what tutors give away.

Learning is the student's turns for the last solved exercise less those for the first, of sessions that solve two or more:
below 0, the student became quicker. A response gives the answer away where it holds a right answer before the exercise is
solved. Intervals are clustered by scenario. Memory: some bytes an exercise.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from edgen.core.text import number, quantity
from edgen.evaluation.figures import (
    WHOLE_NUMBERS,
    Axis,
    Block,
    Histogram,
    histograms_picture,
    interval_of,
    intervals_picture,
    mean_of,
    series_colour,
)
from edgen.evaluation.measure import ArmResult, Measure, Shared, share_intervals
from edgen.evaluation.sample import Sample, Words
from edgen.evaluation.terminal import SUMMARY_HEAD, row, share_with_interval, summary, with_interval
from edgen.space.exercises.answers import is_right
from edgen.space.exercises.model import Exercise, Exercises, Tier
from edgen.stats.distributions import Distribution, summarize_counts
from edgen.stats.intervals import Estimate, average, share


class ExercisesFound(msgspec.Struct, frozen=True, kw_only=True):
    """`exercises` begun; `solved` the share of them; `turns` of the student for each that was solved; `learning` in turns,
    over sessions with two solved or more; `revealed`: the share of tutors' responses that give the answer away; `flagged`:
    the share of them that a student called nonsense, of those that went on."""

    exercises: int
    solved: Estimate | None
    turns: Distribution
    learning: Estimate | None
    revealed: Estimate | None
    flagged: Estimate | None


class ExercisesMeasure(Measure[ExercisesFound]):
    name = "exercises"
    definition = (
        "Exercises begun, the share that is solved, and the student's turns for each that is; learning: turns for the last "
        "solved exercise of a session less those for the first (CIMA: Stasaski, Kao and Hearst 2020, section 4); the share "
        "of tutors' responses, all of a turn, that hold a right answer before the exercise is solved (related to the telling "
        "of Macina et al. 2023, arXiv 2305.14536); and of those that went on, the share that the student called nonsense."
    )
    order = 11
    section = "behaviour"
    nothing = "The records do not say what became of exercises."

    def start(self, shared: Shared) -> ExercisesCount:
        space = shared.data.space
        return ExercisesCount(None if space is None else space.exercises)

    def lines(self, value: ExercisesFound) -> Iterator[str]:
        if not value.exercises:
            return
        yield row(
            "exercises",
            f"{quantity(value.exercises, 'exercise')}, {share_with_interval(value.solved)} solved",
        )
        yield SUMMARY_HEAD
        yield summary("turns to solve one", value.turns)
        if value.learning is not None:
            yield row("learning, last - first", f"{with_interval(value.learning, '+.2f')} turns")
        yield row("gives the answer away", f"{share_with_interval(value.revealed)} of responses")
        yield row("called nonsense", f"{share_with_interval(value.flagged)} of those that went on")

    def blocks(self, found: Sequence[ArmResult[ExercisesFound]]) -> Iterator[Block]:
        turns = [
            Histogram(one.name, one.value.turns, series_colour(place)) for place, one in enumerate(found)
        ]
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
        self._solved, self._of = _Shares(), 0
        self._revealed, self._flagged = _Shares(), _Shares()
        self._deltas, self._delta_scenarios = array("d"), array("q")

    def see(self, sample: Sample, words: Words) -> None:  # noqa: ARG002
        found = (sample.outcome or {}).get("exercises")
        if not isinstance(found, list) or not found:
            return
        index = sample.scenario.index
        known = [one for one in found if isinstance(one, dict)]
        solved = [one["turns"] for one in known if one.get("solved") and isinstance(one.get("turns"), int)]
        self._of += len(known)
        self._solved.add(index, len(solved), len(known))
        self._turns.update(solved)
        if len(solved) > 1:
            self._deltas.append(solved[-1] - solved[0])
            self._delta_scenarios.append(index)
        self._see_responses(sample, known)

    def _see_responses(self, sample: Sample, exercises: Sequence[Mapping[str, Any]]) -> None:
        """What the tutors' responses give away, exercise by exercise."""
        current: Exercise | None = None
        rules, solved = self._exercises, False
        revealed = responses = flagged = went_on = 0
        for turn in sample.turns:
            if "exercise" in turn.data:
                current, rules = self._exercise(exercises, turn.data["exercise"])
                solved = False
            elif turn.data.get("solved"):
                solved = True
            elif turn.labels and turn.role == "Tutor":
                went_on += 1
                flagged += turn.data.get("nonsense") is True
                if current is not None and rules is not None and not solved:
                    said = [turn.text, *[one.text for one in turn.alternatives]]
                    responses += len(said)
                    revealed += sum(is_right(text, current, rules) for text in said)
        self._revealed.add(sample.scenario.index, revealed, responses)
        self._flagged.add(sample.scenario.index, flagged, went_on)

    def _exercise(
        self, exercises: Sequence[Mapping[str, Any]], number: Any
    ) -> tuple[Exercise | None, Exercises | None]:
        """The exercise of that number, and the rules by which its answers are compared: the space's, else as words."""
        if not isinstance(number, int) or not 0 <= number < len(exercises):
            return None, None
        one = exercises[number]
        answers = tuple(answer for answer in one.get("answers") or () if isinstance(answer, str))
        tier = str(one.get("tier"))
        made = Exercise(tier=tier, concepts={}, question=str(one.get("question")), answers=answers)
        rules = self._exercises
        if rules is None or tier not in rules.tiers:
            rules = Exercises({tier: Tier(concepts=(), question="", answers=answers)}, accents="ignored")
        return (made, rules) if answers else (None, None)

    def result(self) -> ExercisesFound:
        return ExercisesFound(
            exercises=self._of,
            solved=self._solved.result(),
            turns=summarize_counts(self._turns),
            learning=average(np.array(self._deltas), np.array(self._delta_scenarios)),
            revealed=self._revealed.result(),
            flagged=self._flagged.result(),
        )


class _Shares:
    """Hits among things, session by session."""

    def __init__(self) -> None:
        self._hits, self._of, self._scenarios = array("I"), array("I"), array("q")

    def add(self, scenario: int, hits: int, of: int) -> None:
        if of:
            self._hits.append(hits)
            self._of.append(of)
            self._scenarios.append(scenario)

    def result(self) -> Estimate | None:
        return share(np.array(self._hits), np.array(self._scenarios), np.array(self._of))


MEASURE = ExercisesMeasure()
