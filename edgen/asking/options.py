"""Options of askers about a run: pairs, annotators, writers. Each is declared here, once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast, get_args

import msgspec

from edgen.core.errors import UsageError
from edgen.core.options import (
    Agent,
    AllowOutside,
    Annotators,
    CallMode,
    CallVia,
    MaxPerScenario,
    MinMargin,
    On,
    Overrides,
    People,
    Positive,
    Rollouts,
    Sample,
    Together,
    TurnsLeft,
    Workers,
    declare_backend,
    declare_label_set,
    declare_layer,
    declare_name,
    declare_output,
    declare_template,
    declare_unit,
    option,
)
from edgen.core.pair import Source

Unit = Literal["turn", "conversation"]
AFTER = 3  # default of --after


Write = Annotated[
    str,  # a writer's name
    option(
        "Write texts in place of labels: paraphrases of a turn, or wrong replies that look right. Plugins add "
        "others: `edgen list askers` names them.",
        "--write",
        metavar="<paraphrases|wrong>",
        completes="writers",
    ),
]
Texts = Annotated[
    Positive, option("With --write: texts for each turn.  [default: 3]", "--texts", metavar="N")
]
After = Annotated[
    int,
    msgspec.Meta(ge=0),
    option("With --write: only turns after N other turns.  [default: 3]", "--after", metavar="N"),
]


class AskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that every asker takes."""

    prompt: Annotated[str | None, declare_template()] = None
    """None for the asker's own template."""
    overrides: Overrides = ()
    """Keys of the job: backends, limits, asks."""
    via: CallVia = "online"
    on: On = None
    """A cluster; None for the job's."""
    workers: Workers = None

    @property
    def mode(self) -> CallMode:
        """The way in which calls are made."""
        return CallMode(self.via, self.on, self.workers)


class PairOptions(AskOptions, frozen=True, kw_only=True):
    """The options of pairs. `by` is the source of the labels."""

    by: Source = "oracle"  # source of the labels
    asker: str = "oracle"  # name of the judge whose labels have the source `oracle`
    against: tuple[Path, ...] = ()
    """Other runs of the same scenarios; then pairs are between the runs."""
    credit: Annotated[
        Literal["whole", "response", "rollouts"] | None,
        option(
            "How to compare two responses to one turn. whole: by the conversations. response: by "
            "the two alone. rollouts: by continuations of each.  [default: the job's, else "
            "response; whole for arms, several runs, and other signals]"
        ),
    ] = None
    rollouts: Rollouts = None
    judge: Annotated[str | None, declare_backend("It judges.  [default: judge, else default]")] = None
    people: People = ()
    """A file of votes."""
    min_margin: MinMargin | None = None
    max_per_scenario: MaxPerScenario = None
    min_turns_left: TurnsLeft = None
    name: Annotated[
        str | None,
        declare_name("The pair set to make or to report on.  [default: default, or human]"),
    ] = None
    allow_outside: AllowOutside = False  # also read files that the job names outside its project

    def with_signal(self, signal: str) -> PairOptions:
        """Return the options with this signal: a source of labels, or a judge by its name."""
        if signal in get_args(Source):
            return msgspec.structs.replace(self, by=cast(Source, signal))
        return msgspec.structs.replace(self, by="oracle", asker=signal)

    @property
    def human(self) -> Path | None:
        """The file of votes. Raises UsageError for more than one."""
        if len(self.people) > 1:
            raise UsageError(f"--people {self.people[1]}: this command takes one file; join the files.")
        return self.people[0] if self.people else None


class AnnotateOptions(AskOptions, frozen=True, kw_only=True):
    """The options of annotators."""

    labels: Annotated[
        str | None,
        declare_label_set(" Plugins add annotators with a set of their own: `edgen list askers` names them."),
    ] = None
    """None for that of an existing layer."""
    by: Annotated[
        tuple[str, ...],
        declare_backend(
            "Give it again for more annotators; NAME= names one.  [default: annotator or writer, else "
            "default]",
            metavar="[NAME=][JOB:]ROLE",
        ),
    ] = ()
    annotators: Annotators = 1
    unit: Annotated[Unit, declare_unit()] = "turn"
    together: Together = False
    sample: Sample = None  # conversations to label, of each arm; None: all
    layer: Annotated[
        str | None,
        declare_layer(" [default: the label set's name]"),
    ] = None
    people: People = ()
    """Files of labels."""
    gold: Annotated[
        str | None,
        option(
            "Score the labels against these: a file, or another layer.",
            metavar="FILE|LAYER",
            completes="layers",
        ),
    ] = None

    @property
    def asks(self) -> bool:
        """True if models are asked: with people's labels, only the named ones."""
        return bool(self.by) or self.annotators > 1 or (self.labels is not None and not self.people)


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `edgen annotate --write`; None for those of `CandidateOptions`."""

    write: Write | None = None
    texts: Texts | None = None
    after: After | None = None
    agent: Agent = None


class CandidateOptions(AskOptions, frozen=True, kw_only=True):
    """The options of a writer."""

    write: Write
    count: Texts = 3
    agent: Agent = None  # the role whose turns get texts
    after: After = AFTER
    by: Annotated[str, declare_backend("It writes.")] = ""
    sample: Sample = None  # conversations of each arm; None: all


class FileAskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that every asker for a file takes, whose backend a job names."""

    backend: Annotated[
        str | None,
        declare_backend(
            " [default: `default` of ./job.yaml if it exists, else the simulator]", metavar="JOB[:ROLE]"
        ),
    ] = None
    prompt: Annotated[str | None, declare_template()] = None
    """None for the asker's own template."""
    overrides: Overrides = ()
    """Keys of the job: backends, limits, asks."""

    @property
    def mode(self) -> CallMode:
        """The way in which calls are made. A command with options for it has another."""
        return CallMode()


class GrowthOptions(FileAskOptions, frozen=True, kw_only=True):
    """The options of new values for a space."""

    dimension: Annotated[str, option("The dimension to extend, as in topic.", metavar="NAME")]
    count: Annotated[Positive, option("Number of new values.", metavar="N")]
    output: Annotated[
        Path | None, declare_output("FILE", "The new space.  [default: <name>-expanded.yaml]")
    ] = None
