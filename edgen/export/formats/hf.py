"""A data set for the Hugging Face hub and `datasets`: Parquet or JSON Lines under `data/`.

https://huggingface.co/docs/hub/datasets-manual-configuration (file names, `configs`, `dataset_info`)

The arms of a run share one table with a column `arm`. With a table per arm, the first arm would be the
default, so users would load a part of the data unknowingly. Conversations of one scenario would also be
spread over several tables.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from edgen.export.formats.shared.trials import DATASETS
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, FormatOptions, LeftOut, Row, RunReader
from edgen.plugin.formats import (
    DEFAULT,
    SPLITS,
    ParquetFile,
    Patterns,
    RowFiles,
    ScenarioColumns,
    SplitName,
    Staging,
    Tried,
    arrow_schema,
    cells_of,
    columns_of,
    has_arrow,
    install_command,
    make_table,
    option,
    read_row,
)

_COLUMNS = (
    *("id", "conversation", "*", "probability", "ended_by"),
    *("scenario", "replicate", "arm", "model", "template_sha256", "simulated"),
)
_DATA = "data"


def rows(run: RunReader, _chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per conversation, with turns as in the run's own record."""
    scenario = ScenarioColumns(run.space)
    for conversation in run.conversations():
        row = read_row(_COLUMNS, scenario, conversation)
        yield Row(conversation.split, row | cells_of(run.layers, conversation))


def _write_code(text: str | None) -> str:
    return "unknown" if text is None else "`" + " ".join(text.replace("`", "'").split()) + "`"


class HubOptions(FormatOptions, frozen=True, kw_only=True):
    """The options of the format."""

    files: Annotated[
        Literal["parquet", "jsonl"] | None,
        option("The kind of files.  [default: parquet where pyarrow is installed]"),
    ] = None


class HubFiles(RowFiles):
    """Files with the hub's names: `data/train-00000-of-00005.parquet`, or `.jsonl`.

    A name states the number of files, and none may be empty, so the rows wait in a temporary file until all
    are known. The types of the columns are given, not guessed from the first rows, which may lack values.
    Raises UsageError at once if Parquet is requested and pyarrow is missing.
    """

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        files = staging.options.of(HubOptions).files
        self._storage = files or ("parquet" if has_arrow() else "jsonl")
        self._schema = arrow_schema(staging.tables[0].types) if self._storage == "parquet" else None
        self._rows: Counter[SplitName] = Counter()
        self._makers: Counter[tuple[str | None, ...]] = Counter()
        self._spools = {split: self.open(self.folder / f".{split}", "x+b") for split in SPLITS}
        self._encode = msgspec.json.Encoder().encode
        if files is None and self._schema is None:
            self.remarks = (
                (
                    "pyarrow is not installed, so the data is JSON Lines; for Parquet: "
                    f"`{install_command('parquet')}`"
                ),
            )

    def add(self, row: Row) -> None:
        self._rows[row.split] += 1
        self._makers[tuple(row.value[key] for key in ("arm", "model", "template_sha256"))] += 1
        self._spools[row.split].write(self._encode(row.value) + b"\n")

    def notes(self) -> Iterator[str]:
        for (arm, model, template), count in self._makers.items():
            of = f"Arm {_write_code(arm)}: " if arm is not None else ""
            yield f"{of}{count} rows by model {_write_code(model)} with template_sha256 {_write_code(template)}."
        if any(arm is not None for arm, *_ in self._makers):
            yield 'One arm is `data.filter(lambda row: row["arm"] == "NAME")`.'

    def finish(self) -> Patterns:
        (self.folder / _DATA).mkdir()
        for split, spool in self._spools.items():
            spool.seek(0)
            for path, count in self._name_files(split):
                self._write(path, itertools.islice(spool, count), split)
            spool.close()
            (self.folder / f".{split}").unlink()
        return {
            (DEFAULT, split): f"{_DATA}/{split}-*.{self._storage}" for split in SPLITS if self._rows[split]
        }

    def _name_files(self, split: SplitName) -> Iterator[tuple[Path, int]]:
        """Yield every file of a split and its number of rows, which differ by at most one."""
        shards = self.staging.run.job.shards
        number = min(shards.train if split == "train" else shards.test, self._rows[split])
        for i in range(number):
            each, rest = divmod(self._rows[split], number)
            name = f"{split}-{i:05d}-of-{number:05d}.{self._storage}"
            yield self.folder / _DATA / name, each + (i < rest)

    def _write(self, path: Path, lines: Iterator[bytes], split: SplitName) -> None:
        if self._schema is None:
            with path.open("xb") as file:
                file.writelines(lines)
            return
        table = ParquetFile(path, self._schema)
        for line in lines:
            table.add(msgspec.json.decode(line))
        table.close()
        self.sizes[DEFAULT, split] = self.sizes.get((DEFAULT, split), 0) + table.nbytes


FORMAT = Format(
    name="hf",
    summary="Whole conversations in one flat table, as Hugging Face's `datasets` loads them.",
    rows=rows,
    tables=lambda space: make_table(space, _COLUMNS),
    layout=FormatLayout(layer_columns=columns_of, files=HubFiles, by_range=True),
    use="""\
from datasets import load_dataset
data = load_dataset("THIS_FOLDER")
data["train"][0]["conversation"]""",
    card=FormatCard(
        notes=(
            "No scenario ({groups}, where the job splits by these) is on both sides of the split.",
            "Rows that share `scenario` are not independent: an interval needs clusters.",
            (
                "`croissant.json` describes the same files for machines (MLCommons Croissant 1.0), with their "
                "sha256."
            ),
        ),
        tried=(
            DATASETS("load_dataset gave the run's records, in both ways to store them."),
            Tried(
                "mlcroissant",
                "1.1.1",
                "2026-11-22",
                "it took croissant.json and gave the run's records.",
            ),
        ),
        tags=("conversational",),
        tasks=("text-generation",),
        hub=True,
    ),
    chat=False,
    Options=HubOptions,
)
