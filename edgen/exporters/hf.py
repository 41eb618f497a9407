"""A data set as the Hugging Face hub names and `datasets` reads it: Parquet or JSON Lines under `data/`.

https://huggingface.co/docs/hub/datasets-manual-configuration (file names, `configs`, `dataset_info`)

The arms of a run share one table, and `arm` tells them apart. A table an arm would make the first of them
the default, so that who loads the folder had a part of the data without knowing it; and what belongs together,
the conversations of one scenario, would lie in several tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from edgen.exporters.base import DEFAULT, Config, Format, Item, Kind, Row, Run
from edgen.exporters.voice import Voice

KINDS: Mapping[str, Kind] = {
    "id": "string",
    "conversation": "turns",
    "topic": "string",
    "student_preference": "string",
    "student_reaction": "string",
    "teacher_preference": "string",
    "teacher_reaction": "string",
    "subject": "string",
    "level": "string",
    "probability": "float64",
    "ended_by": "string",
    "scenario": "int64",
    "replicate": "int64",
    "arm": "string",
    "model": "string",
    "template_sha256": "string",
    "simulated": "bool",
}


def rows(run: Run, _voice: Voice) -> Iterator[Item]:
    """A row a conversation, its turns as the run's own record has them."""
    for lesson in run.lessons():
        one, about, made = lesson.candidate, lesson.scenario, lesson.record.get("provenance", {})
        value = {
            "id": one.id,
            "conversation": lesson.record["conversation"],
            "topic": about.topic,
            "student_preference": about.student_preference,
            "student_reaction": about.student_reaction,
            "teacher_preference": about.teacher_preference,
            "teacher_reaction": about.teacher_reaction,
            "subject": about.subject,
            "level": about.level,
            "probability": one.probability,
            "ended_by": one.ended_by,
            "scenario": about.index,
            "replicate": one.replicate,
            "arm": one.arm,
            "model": made.get("model"),
            "template_sha256": made.get("template_sha256"),
            "simulated": one.simulated,
        }
        yield Row(lesson.split, value)


class Makers:
    """Counts who made the rows: arm, model and template."""

    def __init__(self) -> None:
        self._rows: Counter[tuple[str | None, ...]] = Counter()

    def add(self, row: Row) -> None:
        self._rows[tuple(row.value[key] for key in ("arm", "model", "template_sha256"))] += 1

    def notes(self) -> Sequence[str]:
        notes = [
            f"{f'Arm {_code(arm)}: ' if arm is not None else ''}{count} rows by model {_code(model)} "
            f"with template_sha256 {_code(template)}."
            for (arm, model, template), count in self._rows.items()
        ]
        if any(arm is not None for arm, *_ in self._rows):
            notes.append('One arm is `data.filter(lambda row: row["arm"] == "NAME")`.')
        return notes


def _code(text: str | None) -> str:
    return "unknown" if text is None else "`" + " ".join(text.replace("`", "'").split()) + "`"


COLUMNS: Mapping[str, str] = {
    "id": "the conversation: the run (and arm), the scenario and the replicate",
    "conversation": "the turns, each with role (Teacher or Student) and text; where a side said that the "
    "conversation ends, the last text ends with `[end of conversation]`",
    "topic": "what the lesson is about",
    "student_preference": "how the student likes to learn",
    "student_reaction": "what the student does when taught otherwise",
    "teacher_preference": "how the teacher likes to teach",
    "teacher_reaction": "what the teacher does when the student does not go along",
    "subject": "the topic's subject, where the space names one",
    "level": "the topic's level, where the space names one",
    "probability": "the model's own estimate that the student understood, in [0, 1]; null where it gave none",
    "ended_by": "who spoke the end marker; null where nobody did",
    "scenario": "the number of the scenario; rows that share it share topic, preferences and reactions",
    "replicate": "which of several conversations of the same scenario",
    "arm": "the arm of the experiment; null where there are none",
    "model": "the model that wrote it (where there are two, the teacher's)",
    "template_sha256": "the prompt template, by the sha256 of its text; where a conversation has several (selfplay), "
    "one digest over theirs, which stand in README.md under How it was made",
    "simulated": "whether a simulator wrote it",
}

FORMAT = Format(
    name="hf",
    of="conversations",
    summary="Whole conversations in one flat table, as Hugging Face's `datasets` loads them.",
    rows=rows,
    configs=(Config(DEFAULT, COLUMNS, KINDS),),
    use="""\
from datasets import load_dataset
data = load_dataset("THIS_FOLDER")
data["train"][0]["conversation"]""",
    notes=(
        "No scenario (topic or persona, where the job splits by those) is on both sides of the split.",
        "Rows that share `scenario` are not independent: an interval needs clusters.",
        "`croissant.json` describes the same files for machines (MLCommons Croissant 1.0), with their sha256.",
    ),
    tally=Makers,
    files="hub",
    voiced=False,
    tags=("education-dialogue", "conversational"),
    tasks=("text-generation",),
    croissant=True,
)
