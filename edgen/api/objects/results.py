"""Results of a run: its pairs, its measures, a comparison of its arms."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from edgen.api.objects.html import escape, render_comparison, render_table
from edgen.core.errors import UsageError
from edgen.core.extras import use_extra
from edgen.core.pair import Pair
from edgen.core.values import Turn
from edgen.store.layers import UnitLabels, read_layer
from edgen.store.pairs_file import require_pair_set, use_pair_set
from edgen.store.run_folder import RunFolder
from edgen.store.several_runs import find_pairs_place, open_together
from edgen.store.written_texts import WrittenLine, read_written

if TYPE_CHECKING:
    from edgen.api.annotating import AnnotatedRun
    from edgen.api.candidates import WrittenCandidates
    from edgen.api.pairs import PairedRun
    from edgen.evaluation.comparison.result import ComparisonResult
    from edgen.evaluation.measuring import ArmMeasures
    from edgen.store.run_reader import RunReader


class Tabular:
    """An object with rows: dicts of values by column."""

    def _list_rows(self) -> Iterable[dict[str, Any]]:
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame, a column for every key of any row. Raises UsageError without pandas."""
        return self._load("pandas").DataFrame(self._fill_columns())

    def to_polars(self) -> Any:
        """Return the same as a polars.DataFrame."""
        return self._load("polars").DataFrame(self._fill_columns(), infer_schema_length=None)

    def to_dataset(self) -> Any:
        """Return the same as a datasets.Dataset, of Hugging Face."""
        return self._load("datasets", "dataset").Dataset.from_list(self._fill_columns())

    def _fill_columns(self) -> list[dict[str, Any]]:
        """Return the rows, each with the columns of all rows, in order of first appearance."""
        rows = [*self._list_rows()]
        columns = dict.fromkeys(column for row in rows for column in row)
        return [{column: row.get(column) for column in columns} for row in rows]

    @staticmethod
    def _load(module: str, table: str = "") -> Any:
        needs = f"to_{table or module}() needs {module}, which is not installed; install it with"
        with use_extra(module, needs):
            return importlib.import_module(module)


class Pairs(Tabular):
    """The pairs in a run's pairs.jsonl; iterating yields each pair with all its evidence. `made` has the
    counts of labels and the judge's status; None for pairs made earlier. `against`: the other runs, if pairs
    are between runs. `name`: the pair set, None for the default one."""

    def __init__(
        self, folder: Path, made: PairedRun | None, against: Sequence[Path] = (), name: str | None = None
    ) -> None:
        self.folder = folder
        self.made = made
        self.against = tuple(against)
        self.name = name
        run = find_pairs_place([folder, *against])
        require_pair_set(run, name)
        if not run.pairs.exists():
            raise UsageError(f"{folder}: this run has no pairs yet; make them with run.pairs(by='oracle').")

    def _open(self) -> RunReader:
        reader = open_together([self.folder, *self.against])
        use_pair_set(reader.rundir, self.name)
        return reader

    def report(self) -> dict[str, Any]:
        """Return what `edgen pairs --report` prints: biases, agreement, calibration."""
        from edgen.preferences.bias import report_bias_of_run

        with self._open() as reader:
            return report_bias_of_run(reader)

    @property
    def policies(self) -> list[dict[str, Any]]:
        """The policy matrix by each judge: how often it prefers the conversations of an arm, or of a run, to
        those of another one. Empty without pairs between arms."""
        found: list[dict[str, Any]] = self.report().get("policies", [])
        return found

    def __iter__(self) -> Iterator[Pair]:
        with self._open() as reader:
            yield from reader.pairs()

    def _list_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per pair: the common part, and each side from the turn at which they part."""
        with self._open() as reader:
            for found in reader.compared():
                shared = found.pair.prefix_turns
                yield {
                    **_make_pair_row(found.pair),
                    "shared_text": _join_text(found.a.turns[:shared]),
                    "text_a": _join_text(found.a.turns[shared:]),
                    "text_b": _join_text(found.b.turns[shared:]),
                }

    def _repr_html_(self) -> str:
        rows = [[*_make_pair_row(pair).values()] for pair in islice(self, 20)]
        return render_table(("id", "scenario", "split", "a", "b", "chosen", "by", "p", "left_out"), rows)


def _join_text(turns: Iterable[Turn]) -> str:
    return "\n".join(f"{turn.role}: {turn.text}" for turn in turns)


def _make_pair_row(pair: Pair) -> dict[str, Any]:
    label = pair.label
    return {
        "id": pair.id,
        "scenario": pair.scenario,
        "split": pair.split,
        "a": pair.a.id,
        "b": pair.b.id,
        "chosen": None if label is None else label.chosen,
        "by": None if label is None else label.by,
        "p": None if label is None else label.p,
        "left_out": pair.left_out,
    }


class Layer(Tabular):
    """A layer of labels on a run; iterating yields each unit with every annotator's labels. `made` is the
    status of the annotators; None for labels made earlier."""

    def __init__(self, folder: Path, name: str, made: AnnotatedRun | None = None) -> None:
        from edgen.annotation.layer import LayerFolder  # imports everything that asks annotators

        self.folder = folder
        self.name = name
        self.made = made
        self.file = LayerFolder(RunFolder(folder), name).labels
        if not self.file.exists():
            raise UsageError(f"{folder}: this run has no layer {name!r} yet; edgen.annotate makes one.")

    def __iter__(self) -> Iterator[UnitLabels]:
        return read_layer(self.file)

    def _list_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per unit, with a column for every annotator."""
        for unit in self:
            row = {key: getattr(unit, key) for key in ("id", "turn", "role", "labels", "tie", "agreement")}
            yield {**row, **{f"by.{name}": labels for name, labels in unit.annotators.items()}}

    def __repr__(self) -> str:
        return f"<Layer {self.name} of {self.folder}>"


class Candidates(Tabular):
    """Texts by a model for a run's turns (`write`: "paraphrases" or "wrong"); iterating yields each turn with
    its texts.

    `made` is the status of the writer; None if it was asked earlier.
    """

    def __init__(self, folder: Path, write: str, made: WrittenCandidates | None = None) -> None:
        self.folder = folder
        self.write = write
        self.made = made
        self.file = RunFolder(folder).locate_written_texts(write)
        if not self.file.exists():
            raise UsageError(f"{folder}: this run has no {write} yet; edgen.candidates writes them.")

    def __iter__(self) -> Iterator[WrittenLine]:
        return read_written(self.file)

    def _list_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per text."""
        for turn in self:
            for text in turn.texts:
                yield {
                    "id": turn.id,
                    "turn": turn.turn,
                    "role": turn.role,
                    "text": text,
                    "writer": turn.writer,
                }

    def __repr__(self) -> str:
        return f"<Candidates {self.write} of {self.folder}>"


_SPAN = ("value", "low", "high")


class Comparison(Tabular):
    """A comparison of arms: `result` has every metric with its interval; `file` is its path, None if it is
    not stored."""

    def __init__(self, result: ComparisonResult, file: Path | None) -> None:
        self.result = result
        self.file = file

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Every metric by its name."""
        return {metric.name: metric for metric in self.result.metrics}

    @property
    def policies(self) -> list[dict[str, Any]]:
        """The policy matrix by each judge, as `Pairs.policies`; empty without pairs between the arms."""
        return [] if self.result.policies is UNSET else [*self.result.policies]

    def _list_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per metric and arm, with its difference to the baseline if there is one."""
        for metric in self.result.metrics:
            differences = {one.arm: one for one in metric.differences}
            for arm, estimate in metric.arms.items():
                difference = differences.get(arm)
                told = () if difference is None else ("value", "low", "high", "p", "p_holm")
                yield {
                    "metric": metric.name,
                    "title": metric.title,
                    "kind": metric.kind,
                    "arm": arm,
                    **{key: getattr(estimate, key) for key in ("value", "low", "high", "n")},
                    **{
                        f"difference_{key}" if key in _SPAN else key: getattr(difference, key) for key in told
                    },
                }

    def __str__(self) -> str:
        from edgen.evaluation.comparison.render import render_comparison

        return "\n".join(render_comparison(self.result, 100))

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(arm.label for arm in self.result.arms)}>"

    def _repr_html_(self) -> str:
        return render_comparison(self.result)


class Stats:
    """Measures of conversations.

    `arms` has the measures of each arm, under "" for a run without arms: `stats.arms["x"]["overview"]` is one
    measure of the arm x, `stats["overview"]` one of a run without arms.
    """

    def __init__(self, arms: Mapping[str, ArmMeasures]) -> None:
        self.arms = arms

    def __getitem__(self, measure: str) -> Any:
        if [*self.arms] != [""]:
            raise UsageError(f"this run has arms: say which, as in stats.arms[{next(iter(self.arms))!r}].")
        return self.arms[""][measure]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of `edgen stats --json`."""
        from edgen.evaluation.measuring import describe_as_json

        return describe_as_json(self.arms)

    def __str__(self) -> str:
        from edgen.evaluation.measuring import render

        return "\n\n".join("\n".join(render(quality, None)) for quality in self.arms.values())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"
