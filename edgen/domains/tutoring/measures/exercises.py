"""Outcomes of exercises: the share solved, the turns needed and their change over a session, and answers that
tutors give away.

Learning is the student's turns for the last solved exercise minus those for the first, in sessions that solve
at least two: below 0, the student became quicker. A response gives the answer away if it contains a right
answer before the exercise is solved. Intervals are clustered by scenario. Memory: some bytes per exercise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from edgen.domains.tutoring.exercises.model import Exercise, Exercises, Tier, find_exercises, is_right
from edgen.domains.tutoring.served_turns import list_responses
from edgen.plugin import Histogram, Mean, Measure, Sample, Share, Space, Total, Turn, Words, figure_kinds
from edgen.plugin.measures import Compared, Panel


class ExercisesMeasure(Measure[Any]):
    name = "exercises"
    definition = (
        "Exercises begun, the share solved, the student's turns for each solved one, and the share of these "
        "that the first turn solved, as by a student who knows the answer; learning: turns for a session's "
        "last solved exercise less those for the first (CIMA: Stasaski, Kao and Hearst 2020, section 4); the "
        "share of tutor responses, alternatives included, that contain a right answer before the exercise is "
        "solved (related to the telling of Macina et al. 2023, arXiv 2305.14536); and of the responses that "
        "continued, the share that the student called nonsense."
    )
    order = 11
    section = "behaviour"
    nothing = "The records do not state the outcome of exercises."
    figures = figure_kinds("exercises", "solved", "revealed", "responses")
    aggregates = (
        Total("exercises"),
        Share("solved", "solved", "exercises", label="exercises", says="{exercises:exercise}, {it} solved",
            title="Exercises solved"),
        Histogram("turns", label="turns to solve one"),
        Share("at_once", "at_once", "solved", label="by the first turn", says="{it} of those solved"),
        Mean("learning", label="learning, last - first", says="{it:+.2f} turns"),
        Share("revealed", "revealed", "responses", label="gives the answer away", says="{it} of responses",
            title="Gives the answer away"),
        Share("flagged", "flagged", "went_on", label="called nonsense", says="{it} of those that continued"),
    )  # fmt: skip
    panels = (
        Panel(
            "turns-to-solve", "Turns to solve an exercise", ("turns",),
            "Look for a pile at one: exercises that are too easy, or tutors who give answers away.",
        ),
        Panel(
            "learning", "Learning: turns for the last solved exercise less those for the first",
            ("learning",),
            "Below 0 the student became quicker.",
        ),
        Panel(
            "exercises", "Exercises solved, answers given away", ("solved", "revealed"),
            "Look for a tutor who gives answers away: its students solve more and learn less.",
        ),
    )  # fmt: skip
    compares = (
        Compared(
            name="exercises_solved", title="exercises solved", kind="share", top="solved", bottom="exercises",
            over="exercises", definition="Exercises that are solved, of those begun.",
        ),
        Compared(
            name="turns_to_solve", title="turns to solve one", kind="number", top="turns",
            over="solved exercises", definition="The student's turns for an exercise that is solved.",
        ),
        Compared(
            name="learning", title="learning, last - first", kind="number", top="learning",
            over="sessions with two solved exercises",
            definition="The student's turns for the last solved exercise of a session less those for the "
            "first; below 0 the student became quicker (CIMA: Stasaski, Kao and Hearst 2020, section 4).",
        ),
        Compared(
            name="revealed", title="answers given away", kind="share", top="revealed", bottom="responses",
            over="responses before the exercise is solved",
            definition="Responses of tutors, all of a turn, that hold a right answer before the exercise is "
            "solved (related to the telling of Macina et al. 2023, arXiv 2305.14536).",
        ),
        Compared(
            name="nonsense", title="called nonsense", kind="share", top="flagged", bottom="went_on",
            over="responses that the conversation continued with", definition="Responses that the "
            "conversation continued with and that the student called nonsense.",
        ),
    )  # fmt: skip

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        """Return the counts of a session; an empty mapping if its outcome has no exercises."""
        found = (sample.outcome or {}).get("exercises")
        if not isinstance(found, list) or not found:
            return {}
        known = [one for one in found if isinstance(one, dict)]
        solved = [one["turns"] for one in known if one.get("solved") and isinstance(one.get("turns"), int)]
        return {
            "exercises": len(known),
            "solved": len(solved),
            "turns": solved,
            "at_once": solved.count(1),
            "learning": solved[-1] - solved[0] if len(solved) > 1 else None,
            **_count_responses(sample.turns, known, None if space is None else find_exercises(space)),
        }


def _count_responses(
    turns: Iterable[Turn], exercises: Sequence[Mapping[str, Any]], rules: Exercises | None
) -> dict[str, int]:
    """Count the tutor's labelled turns (`went_on`), those that the student called nonsense (`flagged`), the
    responses in exercises that are not solved yet, and those that give the answer away (`revealed`). `rules`:
    the space's exercises, which say how answers are compared; None: as words."""
    counts = dict.fromkeys(("went_on", "flagged", "responses", "revealed"), 0)
    current, compared_by, done = None, rules, False
    for turn in turns:
        if "exercise" in turn.data:
            current, compared_by = _find_exercise(exercises, turn.data["exercise"], rules)
            done = False
        elif turn.data.get("solved"):
            done = True
        elif turn.labels and turn.role == "Tutor":
            counts["went_on"] += 1
            counts["flagged"] += turn.data.get("nonsense") is True
            if current is not None and compared_by is not None and not done:
                said = [one.text for one in list_responses(turn)]
                counts["responses"] += len(said)
                counts["revealed"] += sum(is_right(text, current, compared_by) for text in said)
    return counts


def _find_exercise(
    exercises: Sequence[Mapping[str, Any]], number: Any, rules: Exercises | None
) -> tuple[Exercise | None, Exercises | None]:
    """Return the exercise with this number, and the rules for comparing its answers: the space's, else as
    words."""
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
