"""MSDialog-Intent (Qu et al., SIGIR 2018): dialogs by their ids, each utterance with its intents."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.export.format import Chat, Format, Item, LeftOut, Row, RunReader
from edgen.export.msdialog import DEFAULTS, LABELS, WHO, DialogFiles, dialog


def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
    """The conversations of which at least one turn has a label."""
    for conversation in run.conversations():
        if any(turn.labels for turn in conversation.candidate.turns):
            value = {"id": conversation.candidate.id, "dialog": dialog(conversation, chat, tags=True)}
            yield Row(conversation.split, value)
        else:
            yield LeftOut("no_labels")


FORMAT = Format(
    name="msdialog-intent",
    summary="Dialogs by their ids with the intents of each utterance, as MSDialog-Intent has them.",
    rows=rows,
    tables={
        "id": "the dialog's id, by which it stands in the file: the conversation's",
        "dialog": "as in msdialog-complete; each utterance has `tags` besides, its labels with spaces between",
    },
    use="""\
import pandas
dialogs = pandas.read_json("THIS_FOLDER/train.json", orient="index")""",
    needs=("labels",),
    files=DialogFiles,
    chat=False,
    options=("agent",),
    notes=(WHO, LABELS, DEFAULTS, "A turn that nobody labelled has no tags, `tags` is then empty."),
    tags=("intent-classification", "information-seeking"),
)
