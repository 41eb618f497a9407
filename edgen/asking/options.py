"""Options of what asks about a run: pairs, annotators, writers. Each is declared here, once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from edgen.core.errors import UsageError
from edgen.core.options import (
    Agent,
    AllowOutside,
    CallMode,
    CallVia,
    On,
    Overrides,
    People,
    Sample,
    TurnsLeft,
    Workers,
    backend,
    option,
    template,
)
from edgen.core.pair import Source

Unit = Literal["turn", "conversation"]
AFTER = 3  # turns before those that something is written for


class AskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that every asker takes."""

    prompt: Annotated[str | None, template("the asker's own")] = None
    overrides: Overrides = ()
    """Keys of the job: backends, limits, asks."""
    via: CallVia = "online"
    on: On = None
    """A cluster; None for the job's."""
    workers: Workers = None

    @property
    def way(self) -> CallMode:
        """The way in which calls are made."""
        return CallMode(self.via, self.on, self.workers)


class PairOptions(AskOptions, frozen=True, kw_only=True):
    """The options of pairs. `by` is the source of the labels."""

    by: Source = "oracle"  # source of the labels
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
    rollouts: Annotated[
        int | None,
        option("Rollouts from each response.  [default: 4]", metavar="K", ge=1),
    ] = None
    judge: Annotated[str | None, backend("It judges.  [default: judge, else default]")] = None
    prompt: Annotated[str | None, template("the job's, else oracle_guarded or oracle_roles")] = None
    people: People = ()
    """A file of votes."""
    min_margin: Annotated[
        float | None,
        option("Leave out pairs less clear than M.", metavar="M", ge=0, le=1),
    ] = None
    max_per_scenario: Annotated[
        int | None, option("Keep the N clearest pairs per scenario.", metavar="N", ge=1)
    ] = None
    min_turns_left: TurnsLeft = None  # minimum turns after the one at which a pair parts
    name: Annotated[
        str | None,
        option(
            "The name of the result. The pair set.  [default: default, or human]",
            metavar="NAME",
        ),
    ] = None
    allow_outside: AllowOutside = False  # also read files that the job names outside its project

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
        option(
            "The label set: a shipped one's name, or a file.", metavar="NAME|FILE", completes="label_sets"
        ),
    ] = None
    """None for that of an existing layer."""
    by: Annotated[
        tuple[str, ...],
        backend(
            "Repeat it for more annotators; NAME= names one.  [default: annotator or writer, else default]",
            metavar="[NAME=][JOB:]ROLE",
        ),
    ] = ()
    annotators: Annotated[
        int, option("Annotators of each backend, each with its own seed.", metavar="N", ge=1)
    ] = 1
    unit: Annotated[Unit, option("What to label.")] = "turn"
    together: Annotated[bool, option("Label all turns of a conversation in one request.")] = False
    sample: Sample = None  # conversations to label, of each arm; None: all
    layer: Annotated[
        str | None,
        option(
            "A layer of labels.  [default: the label set's name]",
            metavar="NAME",
            completes="layers",
        ),
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
    prompt: Annotated[str | None, template("label_turns, paraphrase or wrong_reply")] = None

    @property
    def asks(self) -> bool:
        """True if models are asked: with people's labels, only the named ones."""
        return bool(self.by) or self.annotators > 1 or (self.labels is not None and not self.people)


class CandidateOptions(AskOptions, frozen=True, kw_only=True):
    """The options of a writer."""

    write: Literal["paraphrases", "wrong"]
    """The kind of texts."""
    count: Annotated[int, option("Texts for each turn.")] = 3
    agent: Agent = None  # the role whose turns get texts
    after: Annotated[int, option("Only turns after that many others get texts.")] = AFTER
    by: Annotated[str, backend("It writes.")] = ""
    sample: Sample = None  # conversations of each arm; None: all
    prompt: Annotated[str | None, template("paraphrase or wrong_reply")] = None
