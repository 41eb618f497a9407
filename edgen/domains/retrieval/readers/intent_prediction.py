"""A reader of UserIntentPrediction's dialogs (Qu et al., CHIIR 2019): lines of labels, utterance and actor,
separated by tabs, and a blank line after each dialog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from edgen.domains.retrieval.export.msdialog import CODES
from edgen.plugin import RecordContents, ReportWords, Scenario, Turn
from edgen.plugin.families import FiledRecord, KindDefaults
from edgen.plugin.protocols import SpaceRole
from edgen.plugin.readers import DataSetReader, Piece, TextLayout, make_verbatim_record

_NAMES = {code: name for name, code in CODES.items()}
_ACTORS = ("User", "Agent")


class IntentLines(RecordContents, ReportWords, KindDefaults, TextLayout, DataSetReader):
    """The reader of UserIntentPrediction."""

    name = "intent-prediction"
    title = "MSDialog (intent prediction)"
    schema = "intent_prediction"
    unit = "dialog"
    tags = ("intent-classification",)
    roles = (SpaceRole("User", ()), SpaceRole("Agent", ()))
    precedence = 34
    marks_ends = False

    def recognizes(self, record: Any) -> bool:
        """Return whether a decoded value is a dialog as made by `cut_text`."""
        turns = record["turns"] if isinstance(record, dict) and record.keys() == {"turns"} else None
        return isinstance(turns, list) and all(_is_turn(one) for one in turns)

    def recognizes_text(self, head: str) -> bool:
        """Return whether the first line has three columns, with an actor in the last."""
        columns = next((line for line in head.split("\n") if line.strip()), "").split("\t")
        return len(columns) == 3 and columns[2].strip() in _ACTORS

    def cut_text(self, lines: Iterable[tuple[int, str]]) -> Iterator[Piece]:
        """Yield the dialogs."""
        turns: list[dict[str, str]] = []
        begin = 1
        for number, line in lines:
            if not line.strip():
                if turns:
                    yield _make_piece(turns, begin)
                turns = []
                continue
            columns = line.split("\t")
            if len(columns) != 3:
                raise ValueError(f"line {number} is not 'labels TAB utterance TAB User|Agent'")
            begin = begin if turns else number
            turns.append(dict(zip(("labels", "utterance", "actor"), map(str.strip, columns), strict=True)))
        if turns:
            yield _make_piece(turns, begin)

    def read_file(self, record: Any) -> FiledRecord:
        """Return the conversation of a dialog."""
        if not self.recognizes(record):
            raise ValueError("no dialog of labelled lines")
        if not all(one["actor"] in _ACTORS for one in record["turns"]):
            raise ValueError("an actor that is neither User nor Agent")
        turns = tuple(
            Turn(
                one["actor"],
                one["utterance"],
                tuple(_NAMES.get(tag, tag) for tag in one["labels"].split("_")),
            )
            for one in record["turns"]
        )
        return make_verbatim_record(None, Scenario(-1, {}), turns)


def _is_turn(value: Any) -> bool:
    keys = ("labels", "utterance", "actor")
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in keys)


def _make_piece(turns: list[dict[str, str]], line: int) -> Piece:
    return Piece(msgspec.Raw(msgspec.json.encode({"turns": turns})), None, line)


READER = IntentLines()
