"""A reader of MSDialog-Complete's and MSDialog-Intent's dialogs (Qu et al., SIGIR 2018): one object of
dialogs by their ids.

Utterances in Intent have `tags`: abbreviations of their intents, separated by spaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgen.domains.retrieval.export.msdialog import CODES
from edgen.plugin import RecordContents, ReportWords, Scenario, Turn
from edgen.plugin.families import FiledRecord, KindDefaults, LayoutChecks
from edgen.plugin.protocols import SpaceRole
from edgen.plugin.readers import DataSetReader, make_verbatim_record

_NAMES = {code: name for name, code in CODES.items()}
_KEYS = ("category", "dialog_time", "title", "frequency")
_DATA = ("user_id", "actor_type", "affiliation", "utterance_time", "is_answer", "vote")


class MsDialog(LayoutChecks, RecordContents, ReportWords, KindDefaults, DataSetReader):
    """The reader of MSDialog-Complete and MSDialog-Intent."""

    name = "msdialog"
    title = "MSDialog (Complete, Intent)"
    schema = "msdialog"
    unit = "dialog"
    tags = ("forum", "information-seeking")
    roles = (SpaceRole("User", ()), SpaceRole("Agent", ()))
    precedence = 30
    marks_ends = False

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value has utterances and at least one other key of a dialog."""
        return (
            isinstance(record, dict)
            and isinstance(record.get("utterances"), list)
            and any(key in record for key in _KEYS)
        )

    def read_file(self, record: Any) -> FiledRecord:
        """Return the conversation of a dialog."""
        listed = record.get("utterances") if isinstance(record, dict) else None
        if not isinstance(listed, list) or not listed:
            raise ValueError("no list of utterances")
        category = record.get("category")
        values = {"category": category} if isinstance(category, str) else {}
        return make_verbatim_record(
            None,
            Scenario(-1, values),
            tuple(_read_turn(one) for one in listed),
            outcome={key: record[key] for key in _KEYS if isinstance(record.get(key), str | int)},
        )

    def more_findings(self, record: Any) -> Iterator[tuple[str, str]]:
        """Yield places that do not count from 1, and unknown tags."""
        listed = record.get("utterances") if isinstance(record, dict) else None
        for place, one in enumerate(listed if isinstance(listed, list) else ()):
            if not isinstance(one, dict):
                continue
            if type(found := one.get("utterance_pos")) is int and found != place + 1:
                yield f"$.utterances[{place}].utterance_pos", f"it is {found} in place {place + 1}"
            tags = one.get("tags")
            for tag in tags.split() if isinstance(tags, str) else ():
                if (
                    tag.isupper() and len(tag) <= 2 and tag not in _NAMES
                ):  # other tags belong to the user's own label set
                    yield f"$.utterances[{place}].tags", f"{tag} is not one of {', '.join(_NAMES)}"


def _read_turn(one: Any) -> Turn:
    if not isinstance(one, dict) or not isinstance(one.get("utterance"), str):
        raise ValueError("an utterance without a text")
    actor, tags = one.get("actor_type"), one.get("tags")
    if actor not in ("User", "Agent"):
        raise ValueError("an actor_type that is neither User nor Agent")
    labels = tuple(_NAMES.get(tag, tag) for tag in tags.split()) if isinstance(tags, str) else ()
    return Turn(actor, one["utterance"], labels, {key: one[key] for key in _DATA if key in one})


READER = MsDialog()
