"""Columns shared by the formats of whole conversations, and removal of repeated rows."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from edgen.core.registry import part_of
from edgen.core.space_layouts import name_field
from edgen.core.text import escape_markdown
from edgen.core.values import Scenario
from edgen.export.chat import Message, digest_of
from edgen.export.rows import ColumnType, DataTable
from edgen.families.base import defaults_of, family_of, find_kind_part
from edgen.families.reader import ReportWords
from edgen.space import Dimension, Space
from edgen.store.run_parts import AcceptedConversation

Columns = Mapping[str, tuple[ColumnType, str]]  # a column's type and meaning, by name

COLUMNS: Columns = {
    "id": ("string", "the conversation: the run (and arm), the scenario and the replicate"),
    "conversation": (
        "turns",
        (
            "the turns, each with role ({roles}) and text; where a side ended the conversation, the last "
            "text ends with `[end of conversation]`"
        ),
    ),
    "split": ("string", "train or test; all turns of a scenario are on one side"),
    "scenario": ("int64", "the number of the scenario; rows with the same number share {dimensions}"),
    "replicate": ("int64", "the number of the conversation among those of its scenario"),
    "arm": ("string", "the arm of the experiment; empty where there are none"),
    "probability": (
        "float64",
        "the model's own estimate{estimate}, in [0, 1]; empty where it gave none",
    ),
    "ended_by": ("string", "who spoke the end marker; empty where nobody did"),
    "model": ("string", "the model that wrote it (where there are several, the first role's)"),
    "template_sha256": (
        "string",
        (
            "the prompt template, by the sha256 of its text; where a conversation has several (selfplay), "
            "one digest over their digests, which README.md lists under How it was made"
        ),
    ),
    "simulated": ("bool", "whether a simulator wrote it"),
    "turn": ("int64", "the turn's place in its conversation, from 0"),
    "role": ("string", "{roles}"),
    "text": ("string", "the text, without the end marker"),
}
# Names with a meaning in trainers or reward functions, and names used by the formats.
_OF_TRAINERS = frozenset((
    "prompt", "completion", "chosen", "rejected", "label", "labels", "margin", "p", "score", "messages",
    "prompts", "completions", "environment", "environments", "trainer_state", "log_extra", "log_metric",
    "image", "images", "video", "videos", "audio", "audios", "tools", "chat_template_kwargs", "system",
    "input", "output", "instruction", "history", "conversations", "kto_tag", "train", "in_text", "out_text",
    "input_ids", "attention_mask", "position_ids", "token_type_ids", "seq_lengths", "length",
    "dataset_source",
    "prompt_ids", "completion_ids", "chosen_ids", "rejected_ids", "prompt_mask", "completion_mask",
    "ref_logps", "ref_chosen_logps", "ref_rejected_logps", "ref_per_token_logps", "advantages", "data_source",
    "reward_model", "extra_info", "ability", "agent_name", "index", "solution_str", "ground_truth",
    "enable_thinking", "dataset", "env_class", "reward_spec", "env_config",
))  # fmt: skip


class _Source(NamedTuple):
    """The source of a column's value: a dimension, or a field of its entries."""

    dimension: str
    field: str | None
    type: ColumnType


class ScenarioColumns:
    """The columns of a space: one per dimension, and one per further field of an entry, such as
    `topic.grade`. Fields may have bare names (see `name_field`). Names of other columns and those in
    `taken` get the prefix `scenario.`."""

    def __init__(
        self, space: Space, only: Iterable[str] | None = None, taken: Container[str] = frozenset()
    ) -> None:
        """Select the columns; `only` are the wanted dimensions."""
        self._taken = taken
        self.columns: dict[str, tuple[ColumnType, str]] = {}
        self._sources: dict[str, _Source] = {}
        meanings, fields = find_kind_part(space, ReportWords).meanings, defaults_of(space).fields
        wanted = [one for one in space.dimensions if only is None or one.name in only]
        for one in wanted:
            meaning = escape_markdown(one.label or "") or meanings.get(one.name)
            self._add(
                one.name,
                meaning or f"the scenario's {_split_words(one.name)}",
                _Source(one.name, None, "string"),
            )
        for one in wanted:
            for field in dict.fromkeys((*fields.get(one.name, ()), *one.fields)):
                self._add_field(space, one, field)

    def read_texts(self, scenario: Scenario) -> dict[str, str]:
        """Return the scenario's values by column as texts, never null: a column that is null in one file and
        text in another cannot be loaded."""
        return {name: as_text(value) for name, value in self.read(scenario).items()}

    def _add_field(self, space: Space, dimension: Dimension, field: str) -> None:
        type_ = _find_type([e.fields[field] for e in dimension.entries if field in e.fields])
        meaning = (
            f"the {_split_words(dimension.name)}'s {_split_words(field)}; empty where the space names none"
        )
        name = name_field(dimension.name, field, space.names)
        self._add(name, meaning, _Source(dimension.name, field, type_))

    def _add(self, name: str, meaning: str, source: _Source) -> None:
        name = f"scenario.{name}" if name in COLUMNS or name in self._taken else name
        self.columns[name] = (source.type, meaning)
        self._sources[name] = source

    def read(self, scenario: Scenario) -> dict[str, Any]:
        """Return the scenario's values by column; other types than text, number and boolean as JSON."""
        row: dict[str, Any] = {}
        for name, (dimension, field, type_) in self._sources.items():
            value = scenario[dimension] if field is None else scenario.field(dimension, field)
            row[name] = as_text(value) if type_ == "string" and value is not None else value
        return row


def make_trainer_columns(space: Space) -> ScenarioColumns:
    """Return the columns of a space. Names with a meaning in trainers get the prefix `scenario.`."""
    return ScenarioColumns(space, taken=_OF_TRAINERS)


def as_text(value: Any) -> str:
    """Return a text unchanged, None as the empty text, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def _split_words(name: str) -> str:
    return name.replace("_", " ")


def _find_type(values: Sequence[Any]) -> ColumnType:
    """Return the common type of these values; text without a common type."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "bool"
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in values):
        return "int64"
    return "float64" if kinds and kinds <= {int, float} else "string"


def read_row(
    names: Iterable[str], scenario: ScenarioColumns, conversation: AcceptedConversation
) -> dict[str, Any]:
    """Return a conversation's values by column of COLUMNS, None for those of a turn; "*" stands for those of
    the scenario."""
    one, made = conversation.candidate, conversation.provenance
    whole = {
        "id": one.id,
        "conversation": msgspec.to_builtins(list(conversation.turns)),
        "split": conversation.split,
        "scenario": conversation.scenario.index,
        "replicate": one.replicate,
        "arm": one.arm or None,
        "probability": one.probability,
        "ended_by": one.ended_by,
        "model": made.get("model"),
        "template_sha256": made.get("template_sha256"),
        "simulated": one.simulated,
    }
    row: dict[str, Any] = {}
    for name in names:
        row |= scenario.read(conversation.scenario) if name == "*" else {name: whole.get(name)}
    return row


def make_table(space: Space, names: Iterable[str]) -> DataTable:
    """Return the table of these columns, where "*" stands for those of the space."""
    own = ScenarioColumns(space).columns
    words = part_of(family_of(space), ReportWords)
    said = {
        "roles": " or ".join([", ".join(role.name for role in space.roles[:-1]), space.roles[-1].name]),
        "estimate": f" {words.probability_clause}".rstrip(),
        "dimensions": words.values_clause,
    }
    columns: dict[str, tuple[ColumnType, str]] = {}
    for name in names:
        if name == "*":
            columns |= own
        else:
            type_, meaning = COLUMNS[name]
            columns[name] = (type_, meaning.format(**said))
    return DataTable(
        {name: meaning for name, (_, meaning) in columns.items()},
        types={name: type_ for name, (type_, _) in columns.items()},
    )


class Repeats:
    """A detector of repeated rows within one scenario, which can have equal conversations. It keeps 16 bytes
    per row until the next scenario."""

    def __init__(self) -> None:
        self._scenario: int | None = None
        self._given: set[bytes] = set()

    def has(self, scenario: int, messages: Sequence[Message]) -> bool:
        """Return whether these messages occurred before in this scenario. Scenarios must be in order."""
        if scenario != self._scenario:
            self._scenario, self._given = scenario, set()
        key = digest_of(messages)
        known = key in self._given
        self._given.add(key)
        return known
