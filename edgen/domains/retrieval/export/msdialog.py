"""Common parts of the MSDialog formats (Qu et al., SIGIR 2018; Yang et al., SIGIR 2018): the roles User and
Agent, and a dialog with all keys of its JSON files."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.plugin import Chat, FormatOptions, LeftOut, Row, RunReader, Turn
from edgen.plugin.families import Role
from edgen.plugin.formats import (
    AcceptedConversation,
    Agent,
    OptionValues,
    Rows,
    SplitFiles,
    WriteRow,
    role_of,
)

BEFORE = 9  # turns of a context between its first and its last
Actor = Literal["User", "Agent"]

# The released files' abbreviations of the shipped label set.
CODES = {
    "Original Question": "OQ", "Repeat Question": "RQ", "Clarifying Question": "CQ", "Further Details": "FD",
    "Follow Up Question": "FQ", "Information Request": "IR", "Potential Answer": "PA",
    "Positive Feedback": "PF",
    "Negative Feedback": "NF", "Greetings/Gratitude": "GG", "Junk": "JK", "Others": "O",
}  # fmt: skip
_BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
WHO = (
    "A turn can state that its speaker is User or Agent (`actor_type`, as in threads of a forum). "
    "Otherwise, the role of --agent, or the space's first role, is the Agent, and all others are Users."
)

LABELS = (
    "Labels are the turns' own, unless a layer was named. The names of the label set msdialog_intents are "
    "abbreviated as in the release (OQ, RQ, CQ, FD, FQ, "
    "IR, PA, PF, NF, GG, JK, O); others stay, with hyphens for spaces."
)

TIES = {"ties": "its annotators disagree, so it has no label by most of them"}
TIE = (
    "A turn without labels because its annotators disagree has the key `tie`, which is true; its `tags` is "
    "empty."
)


class AgentOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of formats that distinguish agents from users."""

    agent: Agent = None


def find_agent(run: RunReader, options: OptionValues) -> Role:
    """Return the role of a run that answers users. Raises UsageError for an unknown one."""
    return role_of("--agent", options.of(AgentOptions).agent, run.space)


def find_actor(turn: Turn, agent: Role) -> Actor:
    """Return the actor of a turn: as stated in the turn, else by its role."""
    told = turn.data.get("actor_type")
    if told in ("User", "Agent"):
        return "User" if told == "User" else "Agent"
    return "Agent" if turn.role == agent else "User"


def join_lines(text: str) -> str:
    """Return a text as a cell of a tab-separated line."""
    return " ".join(text.split())


def list_tags(turn: Turn) -> list[str]:
    """Return the turn's labels, with MSDialog's abbreviations. Tags are separated by spaces, so no tag
    contains one."""
    return [CODES.get(label) or "-".join(label.split()) for label in turn.labels]


def find_tied_turns(conversation: AcceptedConversation, layers: Sequence[str]) -> set[int | None]:
    """Return the turns without a label on which the annotators of one of these layers disagree."""
    units = (unit for layer in layers for unit in conversation.labels.get(layer, ()))
    return {
        unit.turn for unit in units if unit.tie and not conversation.candidate.turns[unit.turn or 0].labels
    }


def make_dialog_rows(*, tags: bool) -> Rows:
    """Return the rows of a format with one dialog per conversation; with `tags`, only dialogs with at least
    one label. Utterances are numbered through the whole run, so both formats have the same ids."""

    def make_rows(run: RunReader, chat: Chat) -> Iterator[Row | LeftOut]:
        first, agent = 1, find_agent(run, chat.options)
        for conversation in run.conversations():
            turns = conversation.candidate.turns
            tied = find_tied_turns(conversation, run.labels_of) if tags else None
            if tags and not any(turn.labels for turn in turns):
                yield LeftOut("ties" if tied else "no_labels")
            else:
                dialog = _make_dialog(conversation, agent, first, tied)
                yield Row(conversation.split, {"id": conversation.candidate.id, "dialog": dialog})
            first += len(turns)

    return make_rows


def _make_dialog(
    conversation: AcceptedConversation, agent: Role, first: int, tied: set[int | None] | None
) -> dict[str, Any]:
    """Return a dialog in the JSON files' format, with all keys; DEFAULTS describes the values that a run
    lacks.

    `first` is the id of the first utterance, `tied` the turns whose annotators disagree; None: without tags.
    """
    told = conversation.candidate.outcome or {}
    values = conversation.scenario.values
    subject = next(iter(values.values()), "")
    return {
        "category": _format_text(told.get("category"), subject),
        "dialog_time": _format_text(told.get("dialog_time"), _format_stamp(0)),
        "title": _format_text(told.get("title"), subject),
        "frequency": _format_text(told.get("frequency"), "0"),
        "utterances": list(_list_utterances(conversation, agent, first, tied)),
    }


DEFAULTS = (
    "Defaults for values that a run lacks: `category` and `title` are the value of the space's first "
    'dimension, `frequency` is "0", `vote` is "0", `is_answer` is 0, `affiliation` is the role, and times '
    "are a minute a turn from 2020-01-01 at midnight (UTC)."
)


def _list_utterances(
    conversation: AcceptedConversation, agent: Role, first: int, tied: set[int | None] | None
) -> Iterator[dict[str, Any]]:
    one = conversation.candidate
    for place, turn in enumerate(one.turns):
        data = turn.data
        value = {
            "affiliation": _format_text(data.get("affiliation"), turn.role),
            "utterance_time": _format_text(data.get("utterance_time"), _format_stamp(place)),
            "utterance_pos": place + 1,
            "id": first + place,
            "user_id": _format_text(data.get("user_id"), f"{one.id}-{turn.role}"),
            "actor_type": find_actor(turn, agent),
            "utterance": turn.text,
            "is_answer": int(bool(data.get("is_answer", 0))),
            "vote": _format_votes(data.get("vote")),
        }
        if tied is not None:
            value["tags"] = " ".join(list_tags(turn))
            if place in tied:
                value["tie"] = True
        yield value


def _format_text(told: Any, otherwise: str) -> str:
    """Return a value as text; the default for None, a list or a mapping."""
    return otherwise if told is None or isinstance(told, (dict, list)) else str(told)


def _format_votes(told: Any) -> str:
    """Return votes in the release's form: a text with a whole number."""
    return str(told) if re.fullmatch(r"-?[0-9]+", str(told)) else "0"


def _format_stamp(minutes: int) -> str:
    return (_BEGIN + datetime.timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S")


class DialogFiles(SplitFiles):
    """A writer of one JSON object per split: the dialogs by id. `datasets` cannot load them."""

    suffix = "json"
    is_table = False

    def begin(self, path: Path) -> WriteRow:
        """Open a split's file; return the function that writes a dialog."""
        add, encode = self.open_items(path, b"{\n", b"\n}\n"), msgspec.json.Encoder().encode
        return lambda value: add(b"%b:%b" % (encode(value["id"]), encode(value["dialog"])))


def list_context(turns: Sequence[Turn], last: int) -> list[str]:
    """Return a context, one utterance per line: the first utterance, up to BEFORE directly before turn
    `last`, and turn `last`."""
    return [join_lines(turn.text) for turn in (turns[0], *turns[max(1, last - BEFORE) : last + 1])]
