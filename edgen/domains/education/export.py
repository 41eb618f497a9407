"""The layout of the released Education Dialogue data: exactly its two keys and its file names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from edgen.config import Shards
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader
from edgen.plugin.formats import DEFAULT, Patterns, RowFiles, SplitName, Staging, Tried
from edgen.store.shards import MANIFEST, SplitCounts, write_shards
from edgen.validation.schema import conforms

KEYS = ("background_info", "conversation")
_PATTERNS: dict[SplitName, str] = {"train": "conversations_train*.json", "test": "conversations_eval*.json"}


def rows(run: RunReader, _chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per conversation, with the end marker at the same place as in the run's record."""
    for conversation in run.conversations():
        value = {key: conversation.record[key] for key in KEYS if key in conversation.record}
        yield Row(conversation.split, value) if conforms(value) else LeftOut("invalid")


class EdFiles(RowFiles):
    """A writer of the released lists. Their names state the number of records, so records wait in a temporary
    file; no list is empty, as in the released data."""

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self._spool = self.folder / ".records"
        self._file = self.open(self._spool)
        self._counts: Counter[SplitName] = Counter()
        self._encode = msgspec.json.Encoder().encode

    def add(self, row: Row) -> None:
        self._counts[row.split] += 1
        self._file.write((b"1" if row.split == "test" else b"0") + self._encode(row.value) + b"\n")

    def finish(self) -> Patterns:
        self._file.close()
        counts, asked = self._counts, self.staging.run.job.shards
        shards = Shards(
            train=max(1, min(asked.train, counts["train"])), test=max(1, min(asked.test, counts["test"]))
        )
        manifest = write_shards(
            self.folder, self._iterate_records(), SplitCounts(counts["train"], counts["test"]), shards, {}
        )
        for file in manifest["files"]:
            if not file["records"]:
                (self.folder / file["path"]).unlink()
        (self.folder / MANIFEST).unlink()
        self._spool.unlink()
        return {(DEFAULT, split): pattern for split, pattern in _PATTERNS.items() if counts[split]}

    def _iterate_records(self) -> Iterator[tuple[bool, bytes]]:
        with self._spool.open("rb") as file:
            for line in file:
                yield line[:1] == b"1", line[1:-1]


FORMAT = Format(
    name="ed",
    summary="Whole conversations in the layout of the released Education Dialogue data.",
    rows=rows,
    tables={
        "background_info": "topic, preferences and reactions of both sides, in the released spelling",
        "conversation": "role (Teacher or Student) and text; the end marker is the suffix of the last text",
    },
    use="""\
import json
records = json.load(open("THIS_FOLDER/conversations_train1.json", encoding="utf-8"))""",
    family="education",
    layout=FormatLayout(files=EdFiles, by_range=True),
    chat=False,
    card=FormatCard(
        tried=(
            Tried(
                "datasets",
                "5.2.0",
                "2026-11-22",
                "load_dataset gave the run's conversations.",
            ),
        ),
        tags=("conversational",),
    ),
)
