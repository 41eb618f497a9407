"""ShareGPT rows: from and value, for LLaMA-Factory, axolotl and others.

LLaMA-Factory takes a system message, then alternating human and gpt messages, ending on gpt; it skips other
rows with a warning. axolotl reads `train` of each message (message_field_training).
"""

from __future__ import annotations

from collections.abc import Iterator

from edgen.export.formats.shared.trials import AXOLOTL, LLAMAFACTORY, TRL, UNSLOTH
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.formats import (
    AcceptedConversation,
    MaskOptions,
    Message,
    Repeats,
    without_trailing_user,
)

NAMES = {"system": "system", "user": "human", "assistant": "gpt"}
# A note about the first message, for cards.
OPENING = (
    "Where the trained side begins, its first words are put at the start of human's first message, with the "
    "names of both, and are not trained; --opening user writes an opening line by human instead."
)


def rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per conversation, without repeats within a scenario."""
    repeats = Repeats()
    for conversation in run.conversations():
        yield _make_row(conversation, chat, repeats)


def _make_row(conversation: AcceptedConversation, chat: Chat, repeats: Repeats) -> Row | LeftOut:
    said = chat.messages(conversation.candidate.turns, conversation.scenario, conversation.candidate.ended_by)
    if not any(message["role"] == "assistant" for message in said):
        return LeftOut("untrained")
    messages = without_trailing_user(chat.user_first(said))
    if not begins_with_user(messages):
        return LeftOut("assistant_first")
    if repeats.has(conversation.scenario.index, messages):
        return LeftOut("repeated")
    value = {
        "conversations": [{**convert_message(m), **chat.mask(m)} for m in messages],
        "id": conversation.candidate.id,
    }
    return Row(conversation.split, value, scenario=conversation.scenario)


def begins_with_user(messages: list[Message]) -> bool:
    """Return whether the user speaks first, possibly after a system message."""
    said = [message for message in messages if message["role"] != "system"]
    return bool(said) and said[0]["role"] == "user"


def convert_message(message: Message) -> dict[str, str]:
    """Return the message in ShareGPT's format."""
    return {"from": NAMES[message["role"]], "value": message["content"]}


FORMAT = Format(
    name="sharegpt",
    summary="Whole conversations in ShareGPT's layout, as LLaMA-Factory and axolotl take them.",
    rows=rows,
    tables={
        "conversations": "from (human, gpt or system), value, and train: whether the trained side wrote it "
        "(absent with --no-masks)",
        "id": "the conversation",
    },
    use="""\
# LLaMA-Factory, dataset_info.json:
{"edgen": {"file_name": "THIS_FOLDER/train.jsonl", "formatting": "sharegpt", "columns": {"messages": "conversations"}}}
# axolotl:
datasets: [{path: THIS_FOLDER, type: chat_template, field_messages: conversations, roles_to_train: [],
  message_property_mappings: {role: from, content: value}, message_field_training: train}]""",
    card=FormatCard(
        notes=(
            "A last message by human is cut: LLaMA-Factory wants whole rounds.",
            OPENING,
            "Loaders that take no boolean in a message (unsloth) refuse `train`; --no-masks leaves it out.",
        ),
        tried=(
            AXOLOTL(
                "its preprocessing with the configuration above put the loss on the trained side's turns alone."
            ),
            UNSLOTH("its standardize_sharegpt took the rows with --no-masks, and refused them with masks."),
            TRL("its converter of conversations made the same messages as `trl-sft` has."),
            LLAMAFACTORY(
                "its loader took every row by the entry above, with the loss on the trained side's turns alone."
            ),
        ),
        tags=("sharegpt", "sft", "conversational"),
    ),
    Options=MaskOptions,
    layout=FormatLayout(scenario=True, by_range=True),
)
