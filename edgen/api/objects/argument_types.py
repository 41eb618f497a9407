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

    progress: bool | None  # show progress; None: on a terminal and in a notebook
    on_event: Listener | None  # called with every event, in the caller's thread
    trust_hosts: Iterable[str]  # in the form of --trust-host
    backends: Any  # keys of the job, which replace its own
    limits: Any  # likewise
    batch: Any  # likewise
    asks: Any  # likewise
    forms: Any  # likewise


class AskArguments(QuestionArguments, total=False):
    """The arguments of `AskOptions`."""

    prompt: str | Path | None  # The template: a shipped name, or a .j2 file.
    via: Literal["online", "batch"]  # How to call models.
    on: str | None  # Run on a Ray cluster; without ADDRESS: on all cores here.
    workers: int | None  # Processes that share the work.


class PairArguments(AskArguments, total=False):
    """The arguments of `PairOptions`."""

    credit: Literal["whole", "response", "rollouts"] | None  # How to compare two responses to one turn.
    rollouts: int | None  # Rollouts from each response.
    judge: str | None  # The backend to ask: a role, or a job's role.
    min_margin: float | None  # Leave out pairs less clear than M.
    max_per_scenario: int | None  # Keep the N clearest pairs per scenario.
    min_turns_left: int | None  # Leave out pairs with fewer than N turns after they part.
    name: str | None  # The name of the result.
    allow_outside: bool  # Also read files that the job names outside its project.


class AnnotateArguments(AskArguments, total=False):
    """The arguments of `AnnotateOptions`."""

    by: str | Iterable[str]  # The backend to ask: a role, or a job's role.
    annotators: int  # Annotators of each backend, each with its own seed.
    unit: Literal["turn", "conversation"]  # What to label.
    together: bool  # Label all turns of a conversation in one request.
    sample: int | None  # Use N conversations (of each arm).
    layer: str | None  # A layer of labels.
    people: str | Path | Iterable[str | Path]  # A file of people's votes or labels; the run keeps it.
    gold: str | Path | None  # Score the labels against these: a file, or another layer.


class CandidateArguments(AskArguments, total=False):
    """The arguments of `CandidateOptions`."""

    count: int  # Texts for each turn.
    agent: str | None  # The role that answers users, where turns do not say.
    after: int  # Only turns after that many others get texts.
    by: str  # The backend to ask: a role, or a job's role.
    sample: int | None  # Use N conversations (of each arm).


class SelectArguments(TypedDict, total=False):
    """The arguments of `SelectOptions`."""

    balance: str | Iterable[str]  # Keep as many of each value as of the rarest.
    draw: int | None  # Keep N of the rest, drawn at random.
    seed: int  # Seed of random draws.
    split_by: str | None  # Split again, each value on one side.
    in_order: bool  # With --split-by: the last values become the test side.
    test: float | None  # With --split-by: the test side's share.
