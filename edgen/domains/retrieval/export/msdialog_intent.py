"""The layout of MSDialog-Intent (Qu et al., SIGIR 2018): dialogs by id, each utterance with its intents."""

from __future__ import annotations

from edgen.domains.retrieval.export.msdialog import (
    DEFAULTS,
    LABELS,
    TIE,
    TIES,
    WHO,
    AgentOptions,
    DialogFiles,
    make_dialog_rows,
)
from edgen.plugin import Format, FormatCard, FormatLayout

FORMAT = Format(
    name="msdialog-intent",
    summary="Dialogs by their ids with the intents of each utterance, as MSDialog-Intent has them.",
    rows=make_dialog_rows(tags=True),
    tables={
        "id": "the dialog's id, which is its key in the file: the conversation's id",
        "dialog": "as in msdialog-complete; each utterance also has `tags`, its labels separated by spaces, "
        "and `tie` if annotators disagree",
    },
    use="""\
import pandas
dialogs = pandas.read_json("THIS_FOLDER/train.json", orient="index")""",
    needs=("labels",),
    layout=FormatLayout(files=DialogFiles),
    chat=False,
    Options=AgentOptions,
    card=FormatCard(
        notes=(WHO, LABELS, TIE, DEFAULTS, "In a turn that nobody labelled, `tags` is empty."),
        reasons=TIES,
        tags=("intent-classification", "information-seeking"),
    ),
)
