"""What the formats of MSDialog (Qu et al., SIGIR 2018; Yang et al., SIGIR 2018) share: who is User and who Agent, and a
dialog with everything that readers of its JSON files look up.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.core.values import Turn
from edgen.export.chat import Chat
from edgen.export.files import SplitFiles, WriteRow
from edgen.export.format import Rows
from edgen.export.rows import Item, LeftOut, Row
from edgen.store.run_reader import AcceptedConversation, RunReader

Actor = Literal["User", "Agent"]

# The names of the shipped label set, as the released files abbreviate them.
CODES = {
    "Original Question": "OQ", "Repeat Question": "RQ", "Clarifying Question": "CQ", "Further Details": "FD",
    "Follow Up Question": "FQ", "Information Request": "IR", "Potential Answer": "PA", "Positive Feedback": "PF",
    "Negative Feedback": "NF", "Greetings/Gratitude": "GG", "Junk": "JK", "Others": "O",
}  # fmt: skip
_BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
WHO = (
    "Who is User and who Agent the turns say (`actor_type`, as those of a forum do); where they do not, the role of "
    "--agent is the Agent, without it the space's first role, and all others are Users."
)

LABELS = (
    "Labels are the turns' own, unless a layer was named. The names of the label set msdialog_intents are abbreviated as in the release (OQ, RQ, CQ, FD, FQ, "
    "IR, PA, PF, NF, GG, JK, O); others stay, with hyphens for spaces."
)


def actor_of(turn: Turn, chat: Chat) -> Actor:
    """Who says it: what the turn itself tells, else its role."""
    told = turn.data.get("actor_type")
    if told in ("User", "Agent"):
        return "User" if told == "User" else "Agent"
    return "Agent" if turn.role == chat.agent else "User"


def one_line(text: str) -> str:
    """A text as a cell of a tab-separated line."""
    return " ".join(text.split())


def tags_of(turn: Turn) -> list[str]:
    """The turn's labels, those of MSDialog abbreviated. Tags stand one after the other with spaces between, so none holds
    one."""
    return [CODES.get(label) or "-".join(label.split()) for label in turn.labels]


def rows_of_dialogs(*, tags: bool) -> Rows:
    """The rows of a format that makes a dialog of each conversation; with `tags`, of those of which at least one turn has a
    label."""

    def rows(run: RunReader, chat: Chat) -> Iterator[Item]:
        for conversation in run.conversations():
            if tags and not any(turn.labels for turn in conversation.candidate.turns):
                yield LeftOut("no_labels")
            else:
                value = {"id": conversation.candidate.id, "dialog": _dialog(conversation, chat, tags=tags)}
                yield Row(conversation.split, value)

    return rows


def _dialog(conversation: AcceptedConversation, chat: Chat, *, tags: bool) -> dict[str, Any]:
    """A dialog as the JSON files have it. Everything is there always; what a run does not tell is as DEFAULTS says."""
    told = conversation.candidate.outcome or {}
    values = conversation.scenario.values
    subject = next(iter(values.values()), "")
    return {
        "category": _text(told.get("category"), subject),
        "dialog_time": _text(told.get("dialog_time"), _stamp(0)),
        "title": _text(told.get("title"), subject),
        "frequency": _text(told.get("frequency"), "0"),
        "utterances": list(_utterances(conversation, chat, tags=tags)),
    }


DEFAULTS = (
    'What a run does not tell: `category` and `title` are the value of the space\'s first dimension, `frequency` is "0", '
    "`vote` and `is_answer` are 0, `affiliation` is the role, and times are a minute a turn from 2020-01-01 at midnight (UTC)."
)


def _utterances(conversation: AcceptedConversation, chat: Chat, *, tags: bool) -> Iterator[dict[str, Any]]:
    one = conversation.candidate
    for place, turn in enumerate(one.turns):
        data = turn.data
        value = {
            "affiliation": _text(data.get("affiliation"), turn.role),
            "utterance_time": _text(data.get("utterance_time"), _stamp(place)),
            "utterance_pos": place + 1,
            "id": f"{one.id}-{place + 1}",
            "user_id": _text(data.get("user_id"), f"{one.id}-{turn.role}"),
            "actor_type": actor_of(turn, chat),
            "utterance": turn.text,
            "is_answer": int(bool(data.get("is_answer", 0))),
            "vote": _count(data.get("vote")),
        }
        yield value | ({"tags": " ".join(tags_of(turn))} if tags else {})


def _text(told: Any, otherwise: str) -> str:
    """What was told as a text; numbers are told, too."""
    return otherwise if told is None or isinstance(told, (dict, list)) else str(told)


def _count(told: Any) -> int:
    return told if isinstance(told, int) else 0


def _stamp(minutes: int) -> str:
    return (_BEGIN + datetime.timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S")


class DialogFiles(SplitFiles):
    """A JSON object for each split: the dialogs by their ids. They are no table that `datasets` could load."""

    suffix = "json"
    is_table = False

    def begin(self, path: Path) -> WriteRow:
        """The object, begun."""
        file, encode = self.open(path, end=b"\n}\n"), msgspec.json.Encoder().encode
        before = b"{\n"

        def write(value: dict[str, Any]) -> None:
            nonlocal before
            file.write(b"%b%b:%b" % (before, encode(value["id"]), encode(value["dialog"])))
            before = b",\n"

        return write


def context_of(turns: Sequence[Turn], last: int, recent: int = 9) -> list[str]:
    """The first utterance and up to `recent` more that end with turn `last`, each on one line."""
    begin = max(1, last + 1 - recent)
    return [one_line(turn.text) for turn in (turns[0], *turns[begin : last + 1])]
