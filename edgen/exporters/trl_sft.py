"""TRL's language modeling rows: whole conversations for SFTTrainer.

https://huggingface.co/docs/trl/dataset_formats#language-modeling
"""

from __future__ import annotations

from collections.abc import Iterator

from edgen.exporters.base import DEFAULT, Config, Format, Item, Row, Run, Unfit
from edgen.exporters.repeats import Repeats
from edgen.exporters.voice import Voice, masked


def rows(run: Run, voice: Voice) -> Iterator[Item]:
    """A row a conversation; of those of a scenario that say the same, one."""
    repeats = Repeats()
    for lesson in run.lessons():
        messages = voice.messages(lesson.candidate.turns, lesson.scenario)
        if repeats.has(lesson.scenario.index, messages):
            yield Unfit("repeated")
        else:
            yield Row(lesson.split, {"messages": masked(messages), "id": lesson.candidate.id})


FORMAT = Format(
    name="trl-sft",
    of="conversations",
    summary="Whole conversations, as TRL's SFTTrainer takes them.",
    rows=rows,
    configs=(
        Config(
            DEFAULT,
            {
                "messages": "role, content, and train: whether the trained side wrote the message",
                "id": "the conversation",
            },
        ),
    ),
    use="""\
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer
data = load_dataset("THIS_FOLDER", split="train")
SFTTrainer(model=MODEL, args=SFTConfig(assistant_only_loss=True), train_dataset=data).train()""",
    notes=(
        (
            "SFTTrainer does not read `train`. To learn from the trained side's turns only it needs "
            "assistant_only_loss=True and a chat template with {% generation %} tags."
        ),
        "Trainers that read a mask per message (axolotl: message_field_training: train) find it in `train`.",
    ),
    tags=("trl", "sft", "conversational"),
)
