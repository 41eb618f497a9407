"""A run's folder as an object: its status, its conversations, and exports, measures and pairs of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from edgen.api.finished import export_run, write_report
from edgen.api.objects import signatures
from edgen.api.objects.arguments import AnyRun, Listening, QuestionKeys, fit, read_question, takes
from edgen.api.objects.html import escape, render_conversation, render_status
from edgen.api.objects.results import Pairs, Stats, Tabular
from edgen.api.status import read_status
from edgen.asking.options import PairOptions
from edgen.core import registry
from edgen.core.errors import EdgenError, UsageError
from edgen.core.pair import Source
from edgen.core.text import describe_type
from edgen.core.values import Event, Scenario, Turn
from edgen.evaluation.options import StatsOptions
from edgen.export.shared_options import (
    ChatOptions,
    ExportOptions,
    ExportRequest,
    LayerOptions,
    PairSetOptions,
)
from edgen.export.write import Exported
from edgen.runtime.control import Control
from edgen.runtime.status import StatusReport
from edgen.store.layers import LabelsByLayer, make_cell, name_column
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted conversation of a run.

    >>> one = Conversation(
    ...     id="lessons-000000-r0",
    ...     scenario=Scenario(0, {"topic": "Fractions"}),
    ...     turns=(Turn("Teacher", "What is a half?"), Turn("Student", "One of two.")),
    ...     probability=0.8,
    ...     ended_by="Student",
    ...     split="train",
    ...     arm="",
    ...     replicate=0,
    ...     provenance={},
    ... )
    >>> print(one)
    Teacher: What is a half?
    Student: One of two.
    >>> one.scenario["topic"], one.as_row()["topic"]
    ('Fractions', 'Fractions')
    """

    id: str  # id as in the shards
    scenario: Scenario  # `scenario["topic"]` is a value of it
    turns: tuple[Turn, ...]  # without the end marker
    probability: float | None  # of its family's event; None if unknown
    ended_by: str | None  # the speaker of the end marker; None without one
    split: Literal["train", "test"]  # side of the split
    arm: str  # empty for a run without arms
    replicate: int  # from 0
    provenance: dict[str, Any]  # origin of the record
    outcome: dict[str, Any] | None = None  # result; set by some protocols
    events: tuple[Event, ...] = ()  # events besides turns; set by some protocols
    labels: LabelsByLayer = {}
    """`labels["moves"]` are its units in the layer `moves`, each with the labels of every annotator."""

    def as_row(self) -> dict[str, Any]:
        """Return the row of a table: the scenario's index, a column for every dimension and every field of
        its entries, and a column `labels.<layer>` for the majority's labels in each layer. Labels of turns
        are a list for each turn."""
        scenario = self.scenario.as_row()
        return {
            "id": self.id,
            "scenario": scenario.pop("index"),
            "replicate": self.replicate,
            "arm": self.arm,
            "split": self.split,
            **scenario,
            "turns": [{"role": turn.role, "text": turn.text} for turn in self.turns],
            "probability": self.probability,
            "ended_by": self.ended_by,
            "model": self.provenance.get("model"),
            "simulated": self.provenance.get("simulated"),
            **{name_column(layer): make_cell(units, len(self.turns)) for layer, units in self.labels.items()},
        }

    def __repr__(self) -> str:
        return f"<Conversation {self.id}: {len(self.turns)} turns>"

    def __str__(self) -> str:
        return "\n".join(f"{turn.role}: {turn.text}" for turn in self.turns)

    def _repr_html_(self) -> str:
        return render_conversation(self.id, self.scenario, self.turns, self.probability)


class Run(Tabular):
    """The run in a folder. Each call reads it again, with additions by other processes.

    >>> import edgen
    >>> run = edgen.generate(
    ...     {
    ...         "name": "lessons",
    ...         "conversations": 4,
    ...         "space": "education_dialogue",
    ...         "prompt": "education_dialogue",
    ...         "backends": {"default": {"type": "simulator"}},
    ...     },
    ...     output="lessons",
    ... )
    >>> run.status.state, run.status.accepted
    ('complete', 4)
    >>> [conversation.id for conversation in run.conversations()][:2]
    ['lessons-000000-r0', 'lessons-000001-r0']
    >>> run.stats(["overview"])["overview"].records
    4
    >>> edgen.open("lessons") == run
    True

    Raises RunError for a folder that holds no run.
    """

    def __init__(self, folder: str | Path) -> None:
        if not isinstance(folder, str | Path):
            raise UsageError(f"the run is {describe_type(folder)}; it has to be the path of a run's folder.")
        self.folder = Path(folder)
        RunFolder(self.folder).require()

    @property
    def status(self) -> StatusReport:
        """Status: the counts that `edgen status --json` prints."""
        return read_status(self.folder)

    def conversations(self, split: Literal["train", "test"] | None = None) -> Iterator[Conversation]:
        """Yield every accepted conversation, by scenario and replicate, one at a time; of one side, if
        requested.

        Raises RunError for a ledger with other conversations than those of the run's job.
        """
        with RunReader(self.folder) as reader:
            for accepted in reader.conversations():
                if split not in (None, accepted.split):
                    continue
                one = accepted.candidate
                yield Conversation(
                    id=one.id,
                    scenario=accepted.scenario,
                    turns=one.turns,
                    probability=one.probability,
                    ended_by=one.ended_by,
                    split=accepted.split,
                    arm=one.arm,
                    replicate=one.replicate,
                    provenance=accepted.provenance,
                    outcome=accepted.record.get("outcome"),
                    events=tuple(accepted.record.get("events", ())),
                    labels=accepted.labels,
                )

    def __iter__(self) -> Iterator[Conversation]:
        return self.conversations()

    def _list_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per conversation, with a column for every dimension."""
        return (one.as_row() for one in self)

    @takes(signatures.pairs, PairOptions, Listening, QuestionKeys)
    def pairs(
        self,
        by: str | None = None,
        *,
        against: AnyRun | Iterable[AnyRun] = (),
        human: str | Path | None = None,
        **given: Any,
    ) -> Pairs:
        """Return preference pairs of conversations of one scenario.

        `by`: the source of the labels, "oracle" (a judge model), "probability" or "human"; of responses to
        one turn "flag" or "judged"; the name of another package's judge; None: existing pairs. `against`:
        other runs of the same scenarios, to compare with this one. `human`: a file of people's votes.
        `overrides`: keys of the job.

        Raises ShortError if nothing could be labelled, and the error that stopped the judge.
        """
        several = (
            [*against] if isinstance(against, Iterable) and not isinstance(against, str | Run) else [against]
        )
        others = tuple(Path(one) if isinstance(one, str | Path) else one.folder for one in several)
        if by is None:
            return Pairs(self.folder, None, others, given.get("name"))
        from edgen.api.pairs import list_signals, make_pairs, require_pairs

        if by not in (*get_args(Source), *registry.list_names("asker")):
            raise UsageError(f"by: {by!r} is not a source of labels; use one of {', '.join(list_signals())}.")

        asked, values = read_question(signatures.pairs, PairOptions, given)
        people = () if human is None else (Path(human),)
        options = PairOptions(against=others, people=people, **values).with_signal(by)
        made = asked.run(partial(make_pairs, self.folder, options))
        require_pairs(made)
        return Pairs(self.folder, made, others, made.name)

    @takes(signatures.export, ExportRequest, ExportOptions, ChatOptions, PairSetOptions, LayerOptions)
    def export(
        self,
        format: str,  # noqa: A002 - the field's word
        output: str | Path,
        **given: Any,
    ) -> Exported:
        """Write the run in a format to a new folder, with a card. The format's own options are arguments,
        too, such as `train="student"`; see docs/exports.md. Returns the rows by table and split, and the
        omissions by reason."""
        own: dict[str, Any] = {name: given[name] for name in ("workers", "on") if name in given}
        options = {name: value for name, value in given.items() if name not in own}
        asked = ExportRequest(**fit(signatures.export, ExportRequest, {**own, "output": output}))
        return export_run(self.folder, format, asked, options, Control())

    @takes(signatures.stats, StatsOptions, Listening, QuestionKeys)
    def stats(self, only: Iterable[str] | None = None, **given: Any) -> Stats:
        """Measure the conversations. `only`: names of measures; `judge`: the number of conversations of each
        arm that the job's judge rates for adherence, with the template `prompt`. Measures of the run's own
        job are included if you agreed to run their files. `overrides`: keys of the job for the judge."""
        from edgen.api.stats import load_measures, measure

        asked, values = read_question(signatures.stats, StatsOptions, {**given, "only": only})
        options = StatsOptions(**values)

        def work(control: Control) -> Stats:
            chosen = load_measures([self.folder], options, control)
            return Stats(measure([self.folder], chosen, control))

        return work(asked.control) if options.judge is None else asked.run(work)

    def report(self, output: str | Path | None = None) -> Path:
        """Write one page about the run, to RUN/report.html or another file; return its path."""
        return write_report(self.folder, Control(), None if output is None else Path(output)).path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.folder.resolve() == other.folder.resolve()

    def __hash__(self) -> int:
        return hash(self.folder.resolve())

    def __repr__(self) -> str:
        try:
            status = self.status
        except EdgenError:  # removed or damaged in the meantime
            return f"<Run {self.folder}: it cannot be read>"
        return f"<Run {self.folder}: {status.state}, {status.accepted:,} of {status.planned:,} accepted>"

    def _repr_html_(self) -> str:
        try:
            return render_status(self.status)
        except EdgenError as error:
            return escape(error)
