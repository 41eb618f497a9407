"""The keyword arguments of functions that ask about a run. `make docs` writes this file, from the structs in
edgen/asking/options.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypedDict

from edgen.core.events import Listener


class QuestionArguments(TypedDict, total=False):
    """The listeners, the consent for keys, and the keys of the job that count for questions."""

    progress: bool | None
    on_event: Listener | None
    trust_hosts: Iterable[str]
    backends: Any
    limits: Any
    batch: Any
    asks: Any
    forms: Any


class AskArguments(QuestionArguments, total=False):
    """The arguments of `AskOptions`."""

    prompt: str | Path | None
    via: Literal["online", "batch"]
    on: str | None
    workers: int | None


class PairArguments(AskArguments, total=False):
    """The arguments of `PairOptions`."""

    credit: Literal["whole", "response", "rollouts"] | None
    rollouts: int | None
    judge: str | None
    min_margin: float | None
    max_per_scenario: int | None
    min_turns_left: int | None
    name: str | None
    allow_outside: bool


class AnnotateArguments(AskArguments, total=False):
    """The arguments of `AnnotateOptions`."""

    by: str | Iterable[str]
    annotators: int
    unit: Literal["turn", "conversation"]
    together: bool
    sample: int | None
    layer: str | None
    people: str | Path | Iterable[str | Path]
    gold: str | Path | None


class CandidateArguments(AskArguments, total=False):
    """The arguments of `CandidateOptions`."""

    count: int
    agent: str | None
    after: int
    by: str
    sample: int | None


class SelectArguments(TypedDict, total=False):
    """The arguments of `SelectOptions`."""

    balance: str | Iterable[str]
    draw: int | None
    seed: int
    split_by: str | None
    in_order: bool
    test: float | None
