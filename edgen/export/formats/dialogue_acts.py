"""One row per turn with its dialogue acts, for any protocol that labels its turns; and the protocol's state,
if it has one."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.export.formats.shared.trials import DATASETS
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader


def rows(run: RunReader, _chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield the turns of every conversation with at least one label."""
    for conversation in run.conversations():
        turns = conversation.candidate.turns
        if not any(turn.labels for turn in turns):
            yield LeftOut("no_labels")
            continue
        for number, turn in enumerate(turns):
            state = turn.data.get("state") if turn.data.get("by") != "fixed" else None
            value = {
                "conversation": conversation.candidate.id,
                "turn": number,
                "role": turn.role,
                "text": turn.text,
                "acts": list(turn.labels),
                "state": state if isinstance(state, str) else "",
            }
            yield Row(conversation.split, value)


FORMAT = Format(
    name="dialogue-acts",
    summary="A row a turn: who says what, and which acts it is.",
    rows=rows,
    layout=FormatLayout(by_range=True),
    tables={
        "conversation": "the conversation: the run (and arm), the scenario and the replicate",
        "turn": "the turn's place in its conversation, from 0",
        "role": "who speaks",
        "text": "the text, without the end marker",
        "acts": "the turn's labels in the record; empty where nobody labelled it",
        "state": "the state of the machine at the turn, where its protocol has states; empty for fixed "
        "replies, for typed text, and where nobody chose one",
    },
    use="""\
from datasets import load_dataset
turns = load_dataset("THIS_FOLDER")["train"].filter(lambda turn: turn["acts"])""",
    needs=("labels",),
    chat=False,
    card=FormatCard(
        notes=(
            "Of a turn with alternatives, only the one that the conversation continued with is included.",
            (
                "A conversation without any label is left out; the others have all their turns, as the "
                "context of those with acts."
            ),
        ),
        tags=("dialogue-acts",),
        tried=(DATASETS("load_dataset gave the rows of runs of two protocols."),),
    ),
)
