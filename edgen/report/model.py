"""What a report holds, as values: gathered from a run, drawn, and laid out as a page."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.comparison.model import Comparison
from edgen.model import Scenario, Turn
from edgen.quality.results import Distribution, Quality


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """One that was not accepted. `reply` is the last raw reply, cut to `gather.CUT` characters of `length`;
    None where nothing was answered."""

    id: str
    detail: str | None
    reply: str | None
    length: int


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """All that was not accepted for one reason. `status` is rejected or failed; `examples` are the first."""

    status: str
    reason: str
    count: int
    examples: tuple[Refused, ...]


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a run: when (seconds since the epoch; an end that nobody noted is None), what it made."""

    started: float
    ended: float | None
    state: str
    made: int
    retried: int
    tokens: int
    cost_usd: float | None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A run, or one arm of it; `label` is the arm's name, "" without arms. `latency`: decimal logarithms of the
    seconds that each stored answer took. `job` is as resolved."""

    label: str
    job: dict[str, Any]
    planned: int
    accepted: int
    rejected: dict[str, int]
    failed: dict[str, int]
    pending: int
    asked: int
    state: str
    message: str | None
    simulated: bool
    made: int
    replayed: int
    retried: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    visits: tuple[Visit, ...]
    latency: Distribution
    quality: Quality
    reasons: tuple[Reason, ...]


class Pick(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that is shown. `why` are clauses, the first one what it was chosen for."""

    id: str
    why: tuple[str, ...]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as the page shows it: its first turns, of all that were `said`. `arm` is "" where there are none."""

    id: str
    arm: str
    why: tuple[str, ...]
    scenario: Scenario
    turns: tuple[Turn, ...]
    said: int
    words: int
    probability: float | None
    ended_by: str | None
    repairs: tuple[str, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page is made from. `job` is the text of job.yaml, `inputs` the texts of templates
    and spaces by the names that it has for them, None where a page cannot carry them; `missing` arms that were not begun."""

    name: str
    edgen: str
    job: str
    inputs: dict[str, str] | None
    parts: tuple[Part, ...]
    missing: tuple[str, ...]
    chosen: tuple[Shown, ...]
    comparison: Comparison | None
    uncompared: str | None = None  # why arms are not compared


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The data behind a picture. The first column names the row."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture and all that goes with it: what to look for, a text alternative, its data as tables. `legend` is
    (colour, words); `key` says what numbered rows and columns are: (which, their names)."""

    name: str
    title: str
    svg: str
    caption: str
    label: str
    tables: tuple[Table, ...]
    legend: tuple[tuple[str, str], ...] = ()
    key: tuple[tuple[str, tuple[str, ...]], ...] = ()
