"""The rows of an export, their tables, and reasons for omissions.

Rows come from generators over a run, which do no disk I/O themselves: for each conversation or pair a Row, or
a LeftOut with the reason. Nothing is dropped without a LeftOut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from edgen.core.values import Scenario
from edgen.export.evidence import Evidence
from edgen.preferences.labels import UNLABELLED

SplitName = Literal["train", "test"]
SPLITS: tuple[SplitName, SplitName] = ("train", "test")
DEFAULT = "default"

# turns: a list of role and text; labels: a list of texts; turn_labels: such a list for each turn
ColumnType = Literal["string", "int64", "float64", "bool", "turns", "labels", "turn_labels"]

# Reasons for omissions: reasons of the pairs, and of the formats.
REASONS: Mapping[str, str] = {
    **UNLABELLED,
    "no_label": "the pair has no label",
    "differs_at_other_side": "the two conversations differ first at a turn of the side that is not trained",
    "one_ends": "one conversation goes on where the other ends, so there are no two turns to compare",
    "contradictory": "chosen in one pair and rejected in another, after the same prompt",
    "middling": "about as strong as the middle of the completions after the same prompt, so neither good nor "
    "bad",
    "repeated": "the same row is in the data already",
    "assistant_first": "the first message is not the user's, which this format cannot express",
    "no_prompt": "the trained side speaks first there, so its words have no prompt (--opening user gives it "
    "one)",
    "untrained": "the trained side says nothing in it",
    "system_message": "the first message is a system message, which this format cannot express",
    "no_actions": "the response's actions are unknown, so its prompt cannot name them",
    "actions_differ": "the two responses have different actions, so their prompts differ",
    "nonsense": "the other side called the response nonsense",
    "served": "it is no response to the turn before it, but was served from a pool or a template",
    "too_long": "the messages up to the turn at which the conversations part are more tokens than "
    "--max-tokens",
    "tokens_differ": "the text before the turn is tokenised differently once the turn follows, so it cannot "
    "be masked",
    "only_ends": "the trained side only ends the conversation there, so there are no words to compare with",
    "no_labels": "no turn has a label",
    "invalid": "the record breaks the schema of the released data",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row."""

    split: SplitName
    """Its side of the split."""
    value: dict[str, Any]
    """Its columns."""
    table: str = DEFAULT
    """Its table."""
    evidence: Evidence | None = None
    """The basis of a preference."""
    scenario: Scenario | None = None
    """The scenario for further columns, if the format has them."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Texts of files that the row names, by path in the export's folder. If several rows name a path, the
    first text counts."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An omission: a thing that a format cannot express. `reason` is one of REASONS, of the format's own
    `reasons`, or the pair's own."""

    reason: str


Item = Row | LeftOut


@dataclass(frozen=True, slots=True)
class DataTable:
    """One table of a data set: its columns with their meanings and optionally the types of all. Any value may
    be null."""

    columns: Mapping[str, str]
    name: str = DEFAULT
    types: Mapping[str, ColumnType] = field(default_factory=dict)
