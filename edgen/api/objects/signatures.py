"""The signatures of Python functions that take declared options. `make docs` writes this file, from the
functions and from the structs of their options; nothing calls these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

# ruff: noqa: A002 - names of options

if TYPE_CHECKING:
    from edgen.api.objects.arguments import AnyRun
    from edgen.api.objects.job import AnyJob
    from edgen.execution.progress import Listener


def generate(
    job: AnyJob,
    *,
    output: str | Path | None = None,
    conversations: int | None = None,
    allow_outside: bool = False,
    resume: Literal["auto", "never"] = "auto",
    via: Literal["online", "batch"] = "online",
    on: str | None = None,
    workers: int | None = None,
    partitions: int | None = None,
    scenarios: range | None = None,
    trust_code: str | Path | Iterable[str | Path] = (),
    yes: bool = False,
    progress: bool | None = None,
    on_event: Listener | None = None,
    trust_hosts: str | Iterable[str] = (),
    backends: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> None:
    """Take the arguments of `generate`."""


def select(
    run: AnyRun,
    output: str | Path,
    where: str | Iterable[str] = (),
    *,
    cap: Mapping[str, int] | None = None,
    balance: str | Iterable[str] = (),
    draw: int | None = None,
    seed: int = 0,
    split_by: str | None = None,
    in_order: bool = False,
    test: float | None = None,
) -> None:
    """Take the arguments of `select`."""


def annotate(
    run: AnyRun,
    labels: str | Path | None = None,
    *,
    prompt: str | Path | None = None,
    via: Literal["online", "batch"] = "online",
    on: str | None = None,
    workers: int | None = None,
    by: str | Iterable[str] = (),
    annotators: int = 1,
    unit: Literal["turn", "conversation"] = "turn",
    together: bool = False,
    sample: int | None = None,
    layer: str | None = None,
    people: str | Path | Iterable[str | Path] = (),
    gold: str | Path | None = None,
    progress: bool | None = None,
    on_event: Listener | None = None,
    trust_hosts: str | Iterable[str] = (),
    backends: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    batch: Mapping[str, Any] | None = None,
    asks: int | None = None,
    forms: Literal["auto", "schema", "prose"] | None = None,
    **overrides: Any,
) -> None:
    """Take the arguments of `annotate`."""


def candidates(
    run: AnyRun,
    write: str,
    *,
    prompt: str | Path | None = None,
    via: Literal["online", "batch"] = "online",
    on: str | None = None,
    workers: int | None = None,
    count: int = 3,
    agent: str | None = None,
    after: int = 3,
    by: str = "",
    sample: int | None = None,
    progress: bool | None = None,
    on_event: Listener | None = None,
    trust_hosts: str | Iterable[str] = (),
    backends: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    batch: Mapping[str, Any] | None = None,
    asks: int | None = None,
    forms: Literal["auto", "schema", "prose"] | None = None,
    **overrides: Any,
) -> None:
    """Take the arguments of `candidates`."""


def compare(
    *runs: AnyRun,
    arms: str | Iterable[str] = (),
    prompts: bool = False,
    roles: Mapping[str, str] | None = None,
    output: str | Path | None = None,
) -> None:
    """Take the arguments of `compare`."""


def pairs(
    self: Any,
    by: str | None = None,
    *,
    against: AnyRun | Iterable[AnyRun] = (),
    human: str | Path | None = None,
    prompt: str | Path | None = None,
    via: Literal["online", "batch"] = "online",
    on: str | None = None,
    workers: int | None = None,
    credit: Literal["whole", "response", "rollouts"] | None = None,
    rollouts: int | None = None,
    judge: str | None = None,
    min_margin: float | None = None,
    max_per_scenario: int | None = None,
    min_turns_left: int | None = None,
    name: str | None = None,
    allow_outside: bool = False,
    progress: bool | None = None,
    on_event: Listener | None = None,
    trust_hosts: str | Iterable[str] = (),
    backends: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    batch: Mapping[str, Any] | None = None,
    asks: int | None = None,
    forms: Literal["auto", "schema", "prose"] | None = None,
    **overrides: Any,
) -> None:
    """Take the arguments of `pairs`."""


def export(
    self: Any,
    format: str,
    output: str | Path,
    *,
    workers: int = 1,
    on: str | None = None,
    license: str | None = None,
    language: str | None = None,
    train: str | None = None,
    opening: Literal["user", "system", "both"] | None = None,
    opening_prompt: str | Path | None = None,
    end_marker: Literal["keep", "drop"] | None = None,
    min_turns_left: int | None = None,
    pairs: str | None = None,
    against: str | Iterable[str] = (),
    layer: str | Iterable[str] = (),
    csv_safe: bool = True,
    files: Literal["parquet", "jsonl"] | None = None,
    actions: Literal["labels", "wanted"] | None = None,
    tokenizer: str | None = None,
    max_tokens: int | None = None,
    alternatives: bool = False,
    masks: bool = True,
    **options: Any,
) -> None:
    """Take the arguments of `export`."""


def stats(
    self: Any,
    only: Iterable[str] | None = None,
    *,
    judge: int | None = None,
    prompt: str | Path | None = None,
    workers: int = 1,
    on: str | None = None,
    trust_hosts: str | Iterable[str] = (),
    progress: bool | None = None,
    on_event: Listener | None = None,
    backends: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    batch: Mapping[str, Any] | None = None,
    asks: int | None = None,
    forms: Literal["auto", "schema", "prose"] | None = None,
    **overrides: Any,
) -> None:
    """Take the arguments of `stats`."""
