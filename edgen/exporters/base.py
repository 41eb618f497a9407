"""What every format is made of: the run it reads, the rows it gives, and what it cannot express.

A format is a generator over a run: for each conversation or pair it gives rows, or an Unfit with the
reason why there is none. Nothing is dropped without an Unfit, and nothing here touches the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from edgen.exporters.evidence import Evidence, Level
from edgen.exporters.voice import Voice
from edgen.pairing.labels import LEFT_OUT

if TYPE_CHECKING:
    from edgen.config import Job
    from edgen.rundir import RunDir
    from edgen.runreader import Compared, Lesson

SplitName = Literal["train", "test"]
SPLITS: tuple[SplitName, SplitName] = ("train", "test")
DEFAULT = "default"

Kind = Literal["string", "int64", "float64", "bool", "turns"]  # of a column; turns: a list of role and text
Storage = Literal["parquet", "jsonl"]

# Why something is not in an export: the reasons that come with the pairs, in their words, and the formats' own.
REASONS: Mapping[str, str] = {
    **LEFT_OUT,
    "no_label": "the pair has no label",
    "differs_at_other_side": "the two conversations differ first at a turn of the side that is not trained",
    "one_ends": "one conversation goes on where the other ends, so there are no two turns to compare",
    "contradictory": "chosen in one pair and rejected in another, after the same prompt",
    "repeated": "the same row is there already",
    "assistant_first": "the first message is not the user's, which this format cannot express",
    "system_message": "the first message is a system message, which this format cannot express",
    "invalid": "the record breaks the schema of the released data",
}


class Run(Protocol):
    """What an export reads; `edgen.runreader.RunReader` is one. Every call of lessons and compared
    starts from the beginning."""

    @property
    def name(self) -> str: ...

    @property
    def job(self) -> Job: ...

    @property
    def rundir(self) -> RunDir: ...

    @property
    def simulated(self) -> bool: ...

    def lessons(self) -> Iterator[Lesson]: ...

    def compared(self) -> Iterator[Compared]: ...

    def describe(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Row:
    """One row: which split of which config it belongs to, its columns, and what a preference rests on."""

    split: SplitName
    value: dict[str, Any]
    config: str = DEFAULT
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Unfit:
    """What a format cannot express, by a reason of REASONS or one that the pair itself gives."""

    reason: str


Item = Row | Unfit


class Tally(Protocol):
    """Counts rows of one export for notes that depend on what was exported."""

    def add(self, row: Row) -> None: ...

    def notes(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Config:
    """One table of a data set: its name and what its columns hold. `kinds`, where they are given, are the
    types of all columns; any of them may be null."""

    name: str
    columns: Mapping[str, str]
    kinds: Mapping[str, Kind] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format. `rows` reads the run; `of` is what is counted when something is left out.

    `use` shows how to load and train in a few lines, `notes` what a user has to know, and a `tally` what
    of that depends on the rows. `level` is what a preference is shown on: whole conversations or one turn.
    `voiced` is False where the format holds both sides as they are, so that no side is the trained one.
    `tags` and `tasks` are those of the card; with `croissant` a croissant.json stands beside it.
    """

    name: str
    of: Literal["conversations", "pairs"]
    summary: str
    rows: Callable[[Run, Voice], Iterator[Item]]
    configs: tuple[Config, ...]
    use: str
    notes: tuple[str, ...] = ()
    level: Level | None = None
    tally: Callable[[], Tally] | None = None
    files: Literal["jsonl", "parquet", "ed", "hub", "csv", "convokit"] = "jsonl"
    voiced: bool = True
    tags: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    croissant: bool = False
