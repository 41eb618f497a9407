"""MSDialog-Complete (Qu et al., SIGIR 2018): whole dialogs by their ids."""

from __future__ import annotations

from collections.abc import Iterator

from edgen.export.format import Chat, Format, Item, Row, RunReader
from edgen.export.msdialog import DEFAULTS, WHO, DialogFiles, dialog


def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
    """A row a conversation."""
    for conversation in run.conversations():
        value = {"id": conversation.candidate.id, "dialog": dialog(conversation, chat, tags=False)}
        yield Row(conversation.split, value)


COLUMNS = {
    "id": "the dialog's id, by which it stands in the file: the conversation's",
    "dialog": (
        "category, dialog_time, title, frequency and the utterances, each with affiliation, utterance_time, utterance_pos (from 1), "
        "id, user_id, actor_type (User or Agent), utterance, is_answer and vote"
    ),
}
FORMAT = Format(
    name="msdialog-complete",
    summary="Whole dialogs by their ids, as MSDialog-Complete has them.",
    rows=rows,
    tables=COLUMNS,
    use="""\
import pandas
dialogs = pandas.read_json("THIS_FOLDER/train.json", orient="index")""",
    files=DialogFiles,
    chat=False,
    options=("agent",),
    notes=(WHO, DEFAULTS, "Ids are texts; those of the release are numbers."),
    tags=("conversational", "information-seeking"),
)
