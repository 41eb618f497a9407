"""The layout of the released Education Dialogue data, strict: its two keys, its file names, nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.exporters.base import DEFAULT, Config, Format, Item, Row, Run, Unfit
from edgen.exporters.voice import Voice
from edgen.validation import conforms

KEYS = ("background_info", "conversation")


def rows(run: Run, _voice: Voice) -> Iterator[Item]:
    """A row a conversation, the end marker where the run's own record has it."""
    for lesson in run.lessons():
        value = {key: lesson.record[key] for key in KEYS if key in lesson.record}
        yield Row(lesson.split, value) if conforms(value) else Unfit("invalid")


FORMAT = Format(
    name="ed",
    of="conversations",
    summary="Whole conversations in the layout of the released Education Dialogue data.",
    rows=rows,
    configs=(
        Config(
            DEFAULT,
            {
                "background_info": "topic, preferences and reactions of both sides, in the released spelling",
                "conversation": "role (Teacher or Student) and text; the end marker is the suffix of the last text",
            },
        ),
    ),
    use="""\
import json
records = json.load(open("THIS_FOLDER/conversations_train1.json", encoding="utf-8"))""",
    files="ed",
    voiced=False,
    tags=("education-dialogue", "conversational"),
)
