"""TRL's language modeling rows: whole conversations for SFTTrainer.

https://huggingface.co/docs/trl/dataset_formats#language-modeling
"""

from __future__ import annotations

from collections.abc import Iterator

from edgen.export.formats.shared.trials import AXOLOTL, OPEN_INSTRUCT, TRL, UNSLOTH
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.formats import MaskOptions, Repeats


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per conversation in which the trained side speaks, without repeats within a scenario."""
    repeats = Repeats()
    for conversation in run.conversations():
        messages = chat.messages(
            conversation.candidate.turns, conversation.scenario, conversation.candidate.ended_by
        )
        if not any(message["role"] == "assistant" for message in messages):
            yield LeftOut("untrained")
        elif repeats.has(conversation.scenario.index, messages):
            yield LeftOut("repeated")
        else:
            marked = [{**message, **chat.mask(message)} for message in messages]
            value = {"messages": marked, "id": conversation.candidate.id}
            yield Row(conversation.split, value, scenario=conversation.scenario)


FORMAT = Format(
    name="trl-sft",
    summary="Whole conversations, as TRL's SFTTrainer takes them.",
    rows=rows,
    tables={
        "messages": "role, content, and train: whether the trained side wrote the message (absent with "
        "--no-masks)",
        "id": "the conversation",
    },
    use="""\
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer
data = load_dataset("THIS_FOLDER", split="train")
SFTTrainer(model=MODEL, args=SFTConfig(assistant_only_loss=True), train_dataset=data).train()
# axolotl:
datasets: [{path: THIS_FOLDER, type: chat_template, roles_to_train: [], message_field_training: train}]""",
    card=FormatCard(
        notes=(
            (
                "SFTTrainer does not read `train`. To learn from the trained side's turns only it needs "
                "assistant_only_loss=True and a chat template with {% generation %} tags."
            ),
            "Trainers that read a mask per message (axolotl: message_field_training: train) find it in `train`.",
            "Loaders that take no boolean in a message (unsloth) refuse it; --no-masks leaves it out.",
        ),
        tried=(
            TRL(
                "SFTTrainer took two steps with assistant_only_loss; the loss fell on the trained side's turns "
                "alone."
            ),
            AXOLOTL(
                "its preprocessing with the configuration above put the loss on the trained side's turns alone."
            ),
            UNSLOTH(
                "with --no-masks, its train_on_responses_only put the loss on the trained side's turns, on the "
                "CPU."
            ),
            OPEN_INSTRUCT(
                "with --no-masks, its finetune.py's tokenisation put the loss on the trained side's turns alone."
            ),
        ),
        tags=("trl", "sft", "conversational"),
    ),
    Options=MaskOptions,
    layout=FormatLayout(scenario=True, by_range=True),
)
