"""ShareGPT rows: from and value, for LLaMA-Factory, axolotl and others.

LLaMA-Factory takes a system message, then human and gpt by turns, ending on gpt; whatever else it skips with
a warning. axolotl reads `train` of each message (message_field_training).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from edgen.exporters.base import DEFAULT, Config, Format, Item, Row, Run, Unfit
from edgen.exporters.repeats import Repeats
from edgen.exporters.voice import Voice, without_trailing_user

if TYPE_CHECKING:
    from edgen.runreader import Lesson

NAMES = {"system": "system", "user": "human", "assistant": "gpt"}


def rows(run: Run, voice: Voice) -> Iterator[Item]:
    """A row a conversation; of those of a scenario that say the same, one."""
    repeats = Repeats()
    for lesson in run.lessons():
        yield _row(lesson, voice, repeats)


def _row(lesson: Lesson, voice: Voice, repeats: Repeats) -> Item:
    messages = without_trailing_user(voice.messages(lesson.candidate.turns, lesson.scenario))
    said = [message for message in messages if message["role"] != "system"]
    if said[0]["role"] != "user":
        return Unfit("assistant_first")
    if repeats.has(lesson.scenario.index, messages):
        return Unfit("repeated")
    value = {
        "conversations": [
            {"from": NAMES[m["role"]], "value": m["content"], "train": m["role"] == "assistant"}
            for m in messages
        ],
        "id": lesson.candidate.id,
    }
    return Row(lesson.split, value)


FORMAT = Format(
    name="sharegpt",
    of="conversations",
    summary="Whole conversations in ShareGPT's layout, as LLaMA-Factory and axolotl take them.",
    rows=rows,
    configs=(
        Config(
            DEFAULT,
            {
                "conversations": "from (human, gpt or system), value, and train: whether the trained side wrote it",
                "id": "the conversation",
            },
        ),
    ),
    use="""\
# LLaMA-Factory, dataset_info.json:
{"edgen": {"file_name": "THIS_FOLDER/train.jsonl", "formatting": "sharegpt", "columns": {"messages": "conversations"}}}
# axolotl, under datasets:
- {path: THIS_FOLDER, type: chat_template, field_messages: conversations, roles_to_train: [],
   message_property_mappings: {role: from, content: value}, message_field_training: train}""",
    notes=(
        "A last message by human is cut: LLaMA-Factory wants whole rounds.",
        "Where the trained side begins it needs --opening user or both, so that human speaks first.",
    ),
    tags=("sharegpt", "sft", "conversational"),
)
