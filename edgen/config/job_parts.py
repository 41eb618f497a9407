"""Mappings inside a job file: batches, split, shards, branches, labels, preference pairs, notes of a run."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edgen.config.backends import Text
from edgen.config.label_set import LabelSet
from edgen.core.options import (
    Annotators,
    MaxPerScenario,
    MinMargin,
    Positive,
    Rollouts,
    Together,
    TurnsLeft,
    declare_label_set,
    declare_unit,
)

MOST_LAYERS, MOST_ANNOTATORS = 10, 9  # most layers of a job, and most annotators of a layer
Span = Annotated[str, Meta(pattern=r"^\s*(\d+(\.\d+)?\s*[smhdSMHD]\s*)+\Z", max_length=40)]


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of provider batch jobs (`--via batch`). Spans are written like `6h`, `90m` or `45s`. They
    shape no answer."""

    online_after: Span | None = None
    """Time after which single calls make the rest; null: none."""
    poll: Span = "60s"
    """Maximum pause between checks."""
    max_requests: Positive | None = None
    """Maximum requests per batch; null: the provider's maximum."""


class Split(msgspec.Struct, frozen=True):
    """The split into train and test; groups are never split."""

    test: Annotated[float, Meta(ge=0, lt=1)] = 0.15
    """The test side's share."""
    by: Text | tuple[Text, ...] = "scenario"
    """Values never on both sides: `scenario`, a group of the space's layout such as `persona` (preferences
    and reactions), or dimensions."""

    @property
    def words(self) -> str:
        """The split's criterion, for people."""
        return self.by if isinstance(self.by, str) else " with ".join(self.by)


class Shards(msgspec.Struct, frozen=True):
    """Number of files of each side."""

    train: Annotated[int, Meta(ge=1, le=10_000)] = 5
    """Training files."""
    test: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """Test files."""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """Branching of replicates: all but the first leave replicate 0 at one of the turns of `role`."""

    at: Literal["sampled"] | Annotated[int, Meta(ge=1, le=1000)] = "sampled"
    """The role's turn, from 1, at which replicates part; `sampled` draws it."""
    role: Text | None = None
    """Role whose turn differs; null: the first role."""


class PairSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for judging and choosing preference pairs."""

    votes: Annotated[int, Meta(ge=1, le=100)] = 1
    """Judge calls per pair and order."""
    matches: Positive | None = None
    """Pairs judged per scenario; null: at most two per candidate."""
    compare: Literal["conversation", "response"] | None = None
    """Compared texts; null: responses, but conversations for arms and rewards."""
    min_margin: MinMargin = 0.0
    max_per_scenario: MaxPerScenario = None
    """Null: all."""
    logprobs: Annotated[int, Meta(ge=2, le=20)] | None = None
    """Likely tokens requested from the judge, for soft preferences; null: none."""
    min_turns_left: TurnsLeft = None
    """Null: no minimum."""
    rollouts: Rollouts = None
    """Null: no rollouts."""
    judge_directed: Literal["unlabelled", "label"] = "unlabelled"
    """A pair with a text that addresses the judge."""

    @property
    def compared(self) -> Literal["conversation", "response"]:
        """The texts that the judge of a reward compares."""
        return self.compare or "conversation"


class LabelsAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Labelling of conversations during generation, for gates: one layer."""

    set: Annotated[Text, declare_label_set()] | LabelSet | None = None
    """Null: the shipped one with the layer's name."""
    unit: Annotated[Literal["turn", "conversation"], declare_unit()] | None = None
    """Null: the conversation if all labels are numbers, else each turn."""
    annotators: Annotated[Annotators, Meta(le=MOST_ANNOTATORS)] = 1
    """The majority counts."""
    together: Together = False


RoleWord = Annotated[str, Meta(min_length=1, max_length=40)]


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """Notes of a run in its own copy of the job; ignored when read."""

    edgen: str
    """The version of edgen that made the run."""
    space: str
    """The space as named in the job."""
    space_sha256: str
    """The digest of the space's content."""
    prompts: dict[str, str] = {}
    """The templates by use, as named in the job."""
    prompt: str | None = None
    """The template as named in the job."""
    template_sha256: str
    """The digest of the template, or of all of them."""
    fingerprint: str
    """The digest of everything that shapes an answer."""
