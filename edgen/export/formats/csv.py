"""Flat turns as CSV (RFC 4180, UTF-8): one row per turn, with the conversation's values repeated in each.

Cells that a spreadsheet would run as formulas (`edgen.core.people.sheets`) get an apostrophe before them,
unless the user wants the exact texts.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from edgen.export.formats.shared.trials import DATASETS
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, FormatOptions, LeftOut, Row, RunReader
from edgen.plugin.formats import (
    Patterns,
    ScenarioColumns,
    SplitFiles,
    Staging,
    WriteRow,
    disarm,
    make_table,
    option,
    read_row,
    texts_in,
    texts_of,
)

_COLUMNS = (
    *("id", "split", "scenario", "replicate", "arm", "*"),
    *("turn", "role", "text", "probability", "ended_by", "model", "simulated"),
)


def rows(run: RunReader, _chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per turn, in spoken order."""
    scenario = ScenarioColumns(run.space)
    for conversation in run.conversations():
        row = read_row(_COLUMNS, scenario, conversation)
        labels = texts_in(run.layers, conversation)
        for number, (turn, said) in enumerate(zip(conversation.candidate.turns, labels, strict=True)):
            yield Row(
                conversation.split, {**row, "turn": number, "role": turn.role, "text": turn.text, **said}
            )


class CsvOptions(FormatOptions, frozen=True, kw_only=True):
    """The options of the format."""

    csv_safe: Annotated[
        bool, option("Put an apostrophe before cells that a spreadsheet would read as formulas.")
    ] = True


class CsvFiles(SplitFiles):
    """One table per split, with the columns in its first row. `disarmed` counts the cells with an added
    apostrophe."""

    suffix = "csv"

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self.disarmed: int = 0
        self._safe = staging.options.of(CsvOptions).csv_safe

    def begin(self, path: Path) -> WriteRow:
        write = csv.writer(self.open(path, "x", encoding="utf-8", newline="")).writerow
        write(self.staging.tables[0].columns)
        return lambda value: write(map(self._render_cell, value.values()))

    def finish(self) -> Patterns:
        if self.disarmed:
            said = (
                f"{self.disarmed:,} cells that a spreadsheet would take for formulas begin with an "
                "apostrophe now"
            )
            self.remarks = (f"{said}; --no-csv-safe keeps them exactly.",)
        return super().finish()

    def _render_cell(self, value: Any) -> Any:
        if isinstance(value, bool):
            return str(value).lower()
        if not (self._safe and isinstance(value, str)):
            return value
        safe = disarm(value)
        self.disarmed += safe != value
        return safe

    def notes(self) -> Iterator[str]:
        if not self._safe:
            yield (
                "Texts are kept exactly. A cell may begin with =, +, - or @, which a spreadsheet takes for a "
                "formula: import the file as text, do not double-click it."
            )
        elif self.disarmed:
            yield (
                "Cells that a spreadsheet would take for formulas begin with an added apostrophe: "
                f"{self.disarmed:,} of them. All others are kept exactly; --no-csv-safe keeps these too."
            )


FORMAT = Format(
    name="csv",
    summary="Whole conversations as flat tables, a row a turn.",
    rows=rows,
    tables=lambda space: make_table(space, _COLUMNS),
    layout=FormatLayout(layer_columns=texts_of, files=CsvFiles, by_range=True),
    use="""\
import pandas
turns = pandas.read_csv("THIS_FOLDER/train.csv", keep_default_na=False, na_values={"probability": [""]})
turns.groupby("id", sort=False)["text"].apply(list)""",
    card=FormatCard(
        notes=(
            (
                "A text may be a single word such as NA or null, which pandas reads as a missing value "
                "without keep_default_na=False."
            ),
            "Line breaks inside a text are inside quotes: count rows with a CSV reader, not by lines.",
        ),
        tried=(DATASETS("load_dataset gave the run's conversations."),),
        tags=("conversational",),
    ),
    chat=False,
    Options=CsvOptions,
)
