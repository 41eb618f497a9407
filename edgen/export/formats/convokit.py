"""A corpus for ConvoKit: https://convokit.cornell.edu/documentation/data_format.html

Every conversation has its own speakers. ConvoKit treats a speaker as a person, whose utterances in several
conversations it combines and compares. In edgen, the speakers of each conversation are drawn anew: one
Teacher and one Student for all conversations would be two people with changing characters. Their private
knowledge of the scenario is metadata, and so is `role`, which groups them.

A conversation is named after its first utterance, as the format requires. Timestamps are the positions of
turns. Files are in ASCII, other characters escaped as in JSON: ConvoKit opens its files in the machine's
encoding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader, Scenario, Space
from edgen.plugin.formats import (
    COLUMNS,
    AcceptedConversation,
    Columns,
    DataTable,
    LayerFacts,
    Patterns,
    RowFiles,
    ScenarioColumns,
    Staging,
    Tried,
    cells_of,
    columns_of,
    read_row,
    write_new,
)

_PYTHON = {"string": "str", "int64": "int", "float64": "float", "bool": "bool"}
_BEFORE = ("split",)
_AFTER = ("scenario", "replicate", "arm", "probability", "ended_by", "model", "simulated")
_UTTERANCE = {"role": "str", "turn": "int"}
_OVERALL = {"name": "str", "synthetic": "bool", "simulated": "bool"}


class _Metadata:
    """The metadata of a corpus of this space. Values that all roles or no role knows belong to the
    conversation. Values that some roles know belong to their speakers: `teacher_preference` is the teacher's
    `preference`."""

    def __init__(self, space: Space, layers: Sequence[LayerFacts] = ()) -> None:
        self._layers = layers
        known = [name for role in space.roles for name in role.sees]
        shared = [name for name in space.names if known.count(name) in (0, len(space.roles))]
        self.shared = ScenarioColumns(space, shared)
        self.own = {
            role.name: ScenarioColumns(space, [name for name in role.sees if name not in shared])
            for role in space.roles
        }

    def describe_conversation(self, conversation: AcceptedConversation) -> dict[str, Any]:
        row = read_row((*_BEFORE, "*", *_AFTER), self.shared, conversation)
        return row | cells_of([layer for layer in self._layers if layer.whole], conversation)

    def describe_utterances(self, conversation: AcceptedConversation) -> Iterator[dict[str, Any]]:
        """Yield the utterances' metadata, turn by turn."""
        said = cells_of([layer for layer in self._layers if not layer.whole], conversation)
        for number, turn in enumerate(conversation.candidate.turns):
            labels = {name: None if cell is None else cell[number] for name, cell in said.items()}
            yield {"role": turn.role, "turn": number, **labels}

    def describe_speaker(self, role: str, scenario: Scenario) -> dict[str, Any]:
        own = self.own[role].read(scenario) if role in self.own else {}
        return {"role": role, **{_strip_role(name, role): value for name, value in own.items()}}

    def list_types(self) -> dict[str, dict[str, str]]:
        """Return the metadata by object, with their types."""
        speakers = {
            _strip_role(name, role): _PYTHON[type_]
            for role, columns in self.own.items()
            for name, (type_, _) in columns.columns.items()
        }
        conversations = {
            **{name: _PYTHON[COLUMNS[name][0]] for name in _BEFORE},
            **{name: _PYTHON[type_] for name, (type_, _) in self.shared.columns.items()},
            **{name: _PYTHON[COLUMNS[name][0]] for name in _AFTER},
        }
        labels = [
            dict.fromkeys(columns_of([layer for layer in self._layers if layer.whole is whole]), "list")
            for whole in (False, True)
        ]
        return {
            "utterances": {**_UTTERANCE, **labels[0]},
            "speakers": {"role": "str", **speakers},
            "conversations": {**conversations, **labels[1]},
            "overall": _OVERALL,
        }


def _list_layer_columns(layers: Sequence[LayerFacts]) -> Columns:
    """Return the metadata of layers, by object."""
    of = {
        True: "metadata of conversations: ",
        False: "metadata of utterances, where each has its own: ",
    }
    return {
        name: (type_, of[layer.whole] + meaning)
        for layer in layers
        for name, (type_, meaning) in columns_of([layer]).items()
    }


def _strip_role(column: str, role: str) -> str:
    own = column.removeprefix(f"{role.lower()}_")
    return column if own == "role" else own


def rows(run: RunReader, _chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row per conversation, with its utterances and speakers in the corpus's format."""
    metadata = _Metadata(run.space, run.layers)
    for conversation in run.conversations():
        name = conversation.candidate.id
        value = {
            "id": name,
            "meta": metadata.describe_conversation(conversation),
            "speakers": {
                f"{name}-{role}": metadata.describe_speaker(role, conversation.scenario)
                for role in metadata.own
            },
            "utterances": _list_utterances(conversation, metadata),
        }
        yield Row(conversation.split, value)


def _make_table(space: Space) -> DataTable:
    metadata = {of: ", ".join(names) for of, names in _Metadata(space).list_types().items()}
    speakers = _NUMBERS.get(len(space.roles), len(space.roles))
    return DataTable(
        {
            "utterances.jsonl": "a turn a line: text (without the end marker), speaker, reply-to; metadata: "
            + metadata["utterances"],
            "speakers.json": f"{speakers} of each conversation; metadata: {metadata['speakers']}",
            "conversations.json": f"metadata: {metadata['conversations']}",
            "corpus.json": "metadata of the corpus: the run, and whether a simulator took part in it",
            "index.json": "the names and types of the metadata",
        }
    )


_NUMBERS = {2: "two", 3: "three", 4: "four"}


def _list_utterances(conversation: AcceptedConversation, metadata: _Metadata) -> list[dict[str, Any]]:
    """Return the turns, each a reply to the previous one."""
    name = conversation.candidate.id
    ids = [name, *(f"{name}-{number}" for number in range(1, len(conversation.candidate.turns)))]
    return [
        {
            "id": ids[number],
            "conversation_id": name,
            "text": turn.text,
            "speaker": f"{name}-{turn.role}",
            "meta": meta,
            "reply-to": ids[number - 1] if number else None,
            "timestamp": number,
            "vectors": [],
        }
        for number, (turn, meta) in enumerate(
            zip(conversation.candidate.turns, metadata.describe_utterances(conversation), strict=True)
        )
    ]


class CorpusFiles(RowFiles):
    """The five files of a corpus. The split is in the conversations' metadata, so files are not per split."""

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self._utterances = self.open(self.folder / "utterances.jsonl")
        self._add_speaker, self._add_conversation = (
            self.open_items(self.folder / name, b"{\n", b"\n}\n")
            for name in ("speakers.json", "conversations.json")
        )

    def add(self, row: Row) -> None:
        for utterance in row.value["utterances"]:
            self._utterances.write(f"{json.dumps(utterance)}\n".encode())
        for name, meta in row.value["speakers"].items():
            self._add_speaker(_make_member(name, meta))
        self._add_conversation(_make_member(row.value["id"], row.value["meta"]))

    def finish(self) -> Patterns:
        run = self.staging.run
        overall = {"name": run.name, "synthetic": True, "simulated": run.simulated}
        index = _make_index(_Metadata(run.space, run.layers).list_types())
        for name, value in (("corpus.json", overall), ("index.json", index)):
            write_new(self.folder / name, json.dumps(value, indent=1) + "\n")
        self._open.close()
        return {}


def _make_member(name: str, meta: Any) -> bytes:
    """Return a member of an object of speakers or conversations."""
    return f"{json.dumps(name)}: {json.dumps({'meta': meta, 'vectors': []})}".encode()


def _make_index(metadata: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    return {
        **{
            f"{of}-index": {name: [f"<class '{kind}'>"] for name, kind in names.items()}
            for of, names in metadata.items()
        },
        "version": 1,
        "vectors": [],
    }


FORMAT = Format(
    name="convokit",
    summary="A corpus of whole conversations, as ConvoKit loads it.",
    rows=rows,
    tables=_make_table,
    layout=FormatLayout(layer_columns=_list_layer_columns, files=CorpusFiles, by_range=True),
    use="""\
from convokit import Corpus
corpus = Corpus(filename="THIS_FOLDER")
train = corpus.filter_conversations_by(lambda conversation: conversation.meta["split"] == "train")""",
    card=FormatCard(
        notes=(
            "Every conversation has speakers of its own; speaker.meta['role'] groups them.",
            "Timestamps are the turns' places in their conversation, from 0; nobody measured a time.",
            "In an experiment with arms, corpus.filter_conversations_by selects one by meta['arm'].",
        ),
        tried=(
            Tried(
                "convokit",
                "5.0.0",
                "2026-11-22",
                "Corpus took the folder; its utterances, speakers and metadata were the run's.",
            ),
        ),
        tags=("convokit", "conversational"),
    ),
    chat=False,
)
