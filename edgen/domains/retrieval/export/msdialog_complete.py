"""The layout of MSDialog-Complete (Qu et al., SIGIR 2018): whole dialogs by id."""

from __future__ import annotations

from edgen.domains.retrieval.export.msdialog import DEFAULTS, WHO, AgentOptions, DialogFiles, make_dialog_rows
from edgen.plugin import Format, FormatCard, FormatLayout

COLUMNS = {
    "id": "the dialog's id, which is its key in the file: the conversation's id",
    "dialog": (
        "category, dialog_time, title, frequency and the utterances, each with affiliation, utterance_time, "
        "utterance_pos (from 1), id, user_id, actor_type (User or Agent), utterance, is_answer and vote"
    ),
}
FORMAT = Format(
    name="msdialog-complete",
    summary="Whole dialogs by their ids, as MSDialog-Complete has them.",
    rows=make_dialog_rows(tags=False),
    tables=COLUMNS,
    use="""\
import pandas
dialogs = pandas.read_json("THIS_FOLDER/train.json", orient="index")""",
    layout=FormatLayout(files=DialogFiles),
    chat=False,
    Options=AgentOptions,
    card=FormatCard(
        notes=(WHO, DEFAULTS, "Ids of utterances are numbers that count through the run."),
        tags=("conversational", "information-seeking"),
    ),
)
