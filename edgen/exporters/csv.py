"""Flat turns as CSV (RFC 4180, UTF-8): a row a turn, what holds for the whole conversation repeated in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgen.exporters.base import DEFAULT, Config, Format, Item, Kind, Row, Run
from edgen.exporters.voice import Voice

COLUMNS = {
    "id": "the conversation",
    "split": "train or test; all turns of a scenario are on one side",
    "scenario": "the number of the scenario",
    "replicate": "which of several conversations of the same scenario",
    "arm": "the arm of the experiment; empty where there are none",
    "topic": "what the lesson is about",
    "student_preference": "how the student likes to learn",
    "student_reaction": "what the student does when taught otherwise",
    "teacher_preference": "how the teacher likes to teach",
    "teacher_reaction": "what the teacher does when the student does not go along",
    "subject": "the topic's subject; empty where the space names none",
    "level": "the topic's level; empty where the space names none",
    "turn": "the turn's place in its conversation, from 0",
    "role": "Teacher or Student",
    "text": "what was said, without the end marker",
    "probability": "the model's own estimate that the student understood, in [0, 1]; empty where it gave none",
    "ended_by": "who spoke the end marker; empty where nobody did",
    "model": "the model that wrote the conversation (where there are two, the teacher's)",
    "simulated": "true where a simulator wrote the conversation, else false",
}

NUMBERS: Mapping[str, Kind] = {
    "scenario": "int64",
    "replicate": "int64",
    "turn": "int64",
    "probability": "float64",
    "simulated": "bool",
}
KINDS: Mapping[str, Kind] = {name: NUMBERS.get(name, "string") for name in COLUMNS}


def rows(run: Run, _voice: Voice) -> Iterator[Item]:
    """A row a turn, in the order in which they were spoken."""
    for lesson in run.lessons():
        one, about = lesson.candidate, lesson.scenario
        for number, turn in enumerate(one.turns):
            value = {
                "id": one.id,
                "split": lesson.split,
                "scenario": about.index,
                "replicate": one.replicate,
                "arm": one.arm,
                "topic": about.topic,
                "student_preference": about.student_preference,
                "student_reaction": about.student_reaction,
                "teacher_preference": about.teacher_preference,
                "teacher_reaction": about.teacher_reaction,
                "subject": about.subject,
                "level": about.level,
                "turn": number,
                "role": turn.role,
                "text": turn.text,
                "probability": one.probability,
                "ended_by": one.ended_by,
                "model": lesson.record.get("provenance", {}).get("model"),
                "simulated": one.simulated,
            }
            yield Row(lesson.split, value)


FORMAT = Format(
    name="csv",
    of="conversations",
    summary="Whole conversations as flat tables, a row a turn.",
    rows=rows,
    configs=(Config(DEFAULT, COLUMNS, KINDS),),
    use="""\
import pandas
turns = pandas.read_csv("THIS_FOLDER/train.csv", keep_default_na=False, na_values={"probability": [""]})
turns.groupby("id", sort=False)["text"].apply(list)""",
    notes=(
        "A text may be a single word such as NA or null, which pandas takes for a missing value unless told not to.",
        "Line breaks inside a text are inside quotes: count rows with a CSV reader, not by lines.",
    ),
    files="csv",
    voiced=False,
    tags=("education-dialogue", "conversational"),
)
