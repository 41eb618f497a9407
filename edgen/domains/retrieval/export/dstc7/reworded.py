"""Sub-task 3: models' paraphrases of a turn are right answers, too."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from edgen.domains.retrieval.export.dstc7.collect import KnownUtterances
from edgen.domains.retrieval.export.dstc7.paraphrased import (
    Paraphrased,
    list_paraphrases,
    open_paraphrases,
    select_for_training,
)
from edgen.domains.retrieval.export.msdialog import join_lines
from edgen.plugin import Row
from edgen.plugin.errors import ShortError
from edgen.plugin.files import read_regular
from edgen.plugin.formats import AcceptedConversation, RunFolder, read_written

DIALOGS = "dialogs"  # name of the table
_ID = re.compile(r"[0-9a-f]{16}")


def list_writers(run: RunFolder) -> list[str]:
    """Return the models that wrote a run's paraphrases, as far as they are recorded."""
    path = run.locate_written_texts("paraphrases")
    found = set()
    for writer in {line.writer for line in read_written(path)}:
        facts: Any = None
        with contextlib.suppress(OSError, ValueError, RecursionError):
            if _ID.fullmatch(writer):
                facts = msgspec.json.decode(
                    read_regular(run.candidates / "paraphrases" / f"{writer}.json", 4_000_000)
                )
        backend = facts.get("backend") if isinstance(facts, dict) else None
        found.add(str(backend.get("model")) if isinstance(backend, dict) else "not known")
    return sorted(found)


class Rewordings:
    """The paraphrases of a run's turns. Raises ShortError if there are none."""

    def __init__(self, known: KnownUtterances) -> None:
        self._known = known
        if (written := open_paraphrases(known.run)) is None:
            raise self.make_no_paraphrases_error()
        self._written = written

    def make_no_paraphrases_error(self) -> ShortError:
        """Return the error for missing paraphrases."""
        two, several = (
            ("", "")
            if self._known.paraphrased is None
            else (" (two or more each, one of them for tests of the first kind)", " --texts 3")
        )
        return ShortError(
            f"{self._known.run.name}: sub-task 3 needs paraphrases of the turns to choose{two}, and no turn to "
            f"choose has paraphrases. `edgen annotate {self._known.run.rundir.path} --write paraphrases{several}` "
            "makes a model write them."
        )

    def of(self, conversation: AcceptedConversation, place: int) -> list[str]:
        """Return a turn's paraphrases, each text once, without the turn's own text."""
        if isinstance(conversation, Paraphrased):
            return [*conversation.places.get(place, ())[1:]]
        one = conversation.candidate
        found = list_paraphrases(self._written, one.id, place, one.turns[place])
        return found if self._known.paraphrased is None else [*select_for_training(found)]

    def iterate_dialogs(self) -> Iterator[Row]:
        """Yield rows of the original conversations, with the paraphrases of each turn, so that users can
        combine them. Conversations of the test side are excluded, since they would reveal the answers."""
        known = self._known
        for conversation in known.run.conversations():
            if (side := known.sides.of(conversation)) != "test":
                one = conversation.candidate
                messages: list[dict[str, Any]] = [
                    {
                        "speaker": known.name_speaker(turn),
                        "utterance": join_lines(turn.text),
                        "paraphrases": self.of(conversation, place),
                    }
                    for place, turn in enumerate(one.turns)
                ]
                dialog = {"data-split": side, "dialog-id": one.id, "messages": messages}
                yield Row("train", {"side": side, "dialog": dialog}, table=DIALOGS)
