"""The five files of a ConvoKit corpus, streamed.

All is written in ASCII, other characters escaped as JSON has them: ConvoKit opens its files in the encoding of
whatever machine it is on.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from edgen.exporters.base import Row, Run, SplitName
from edgen.exporters.convokit import CONVERSATION, SPEAKER, UTTERANCE

OVERALL = {"name": "str", "synthetic": "bool", "simulated": "bool"}


class CorpusFiles:
    """See `files.Files`. The split is in the conversations' metadata, so no file belongs to one."""

    def __init__(self, folder: Path, run: Run) -> None:
        self._folder = folder
        self._run = run
        self._end = contextlib.ExitStack()
        self._utterances = self._open("utterances.jsonl")
        self._speakers = _Object(self._open("speakers.json"))
        self._conversations = _Object(self._open("conversations.json"))

    def add(self, row: Row) -> None:
        for utterance in row.value["utterances"]:
            self._utterances.write(json.dumps(utterance) + "\n")
        for name, meta in row.value["speakers"].items():
            self._speakers.add(name, {"meta": meta, "vectors": []})
        self._conversations.add(row.value["id"], {"meta": row.value["meta"], "vectors": []})

    def finish(self) -> dict[tuple[str, SplitName], str]:
        self._speakers.end()
        self._conversations.end()
        overall = {"name": self._run.name, "synthetic": True, "simulated": self._run.simulated}
        self._open("corpus.json").write(json.dumps(overall, indent=1) + "\n")
        self._open("index.json").write(json.dumps(_index(), indent=1) + "\n")
        self._end.close()
        for path in self._folder.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        return {}

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._end.close()

    def _open(self, name: str) -> TextIO:
        return self._end.enter_context(
            (self._folder / name).open("x", encoding="ascii", newline="\n", buffering=1 << 18)
        )


class _Object:
    """One JSON object, written member by member."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._before = "{\n"

    def add(self, name: str, value: Any) -> None:
        self._file.write(f"{self._before}{json.dumps(name)}: {json.dumps(value)}")
        self._before = ",\n"

    def end(self) -> None:
        self._file.write("{}\n" if self._before == "{\n" else "\n}\n")


def _index() -> dict[str, Any]:
    return {
        "utterances-index": _types(UTTERANCE),
        "speakers-index": _types(SPEAKER),
        "conversations-index": _types(CONVERSATION),
        "overall-index": _types(OVERALL),
        "version": 1,
        "vectors": [],
    }


def _types(names: Mapping[str, str]) -> dict[str, list[str]]:
    return {name: [f"<class '{kind}'>"] for name, kind in names.items()}
