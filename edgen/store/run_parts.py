"""Values that a run's reader yields: conversations, pairs with their sides, and ranges for other readers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.core.errors import RunError
from edgen.core.kept_files import has_digest, require_kept
from edgen.core.pair import Candidate, Pair
from edgen.core.values import Scenario, Turn
from edgen.space.splits import HeldOutGroups
from edgen.store.layers import LabelsByLayer, LayerFacts, find_layer_files
from edgen.store.ordered_lines import MOST
from edgen.store.run_folder import RunFolder


class AcceptedConversation(msgspec.Struct, frozen=True):
    """An accepted conversation with scenario, side of the split and record."""

    candidate: Candidate  # the conversation, as a candidate for pairs
    scenario: Scenario  # the values of the conversation
    split: Literal["train", "test"]  # side of the split
    record: dict[str, Any]  # number of its group, as in the shards
    turns: tuple[Turn, ...]  # the record's turns, with an end marker
    provenance: dict[str, Any]  # the record's data, plain JSON
    labels: LabelsByLayer = {}  # labels of each of the run's layers


class ComparedPair(msgspec.Struct, frozen=True):
    """A line of pairs.jsonl with its two conversations."""

    pair: Pair
    a: Candidate
    b: Candidate
    scenario: Scenario


class RunRange(msgspec.Struct, frozen=True):
    """Some scenarios of a run, with facts of the whole run: its test side and its layers."""

    scenarios: range
    test_side: HeldOutGroups
    layers: tuple[LayerFacts, ...]


def require_order(run: RunFolder) -> None:
    """Raise DamagedError for a changed file of pairs or labels, and RunError for a file that edgen did not
    write, since its lines may be in any order."""
    for path in [*find_layer_files(run).values(), *filter(Path.exists, [run.pairs])]:
        if not has_digest(path):
            raise RunError(
                f"{path}: this file was not written by edgen, so its lines may be in any order, and the run "
                "cannot be divided among processes; leave --workers out."
            )
        require_kept(path, "Make it again with the command that wrote it.")


def cut_plan(scenarios: int, step: int) -> Iterator[range]:
    """Yield ranges of `step` scenarios. The last range also has all higher numbers."""
    starts = [0, *range(step, scenarios, step)]
    for start, end in itertools.zip_longest(starts, starts[1:], fillvalue=MOST):
        yield range(start, end)
