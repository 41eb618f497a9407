"""`edgen stats`: what a data set is like, measured: a run, an arm at a time, or anybody's files."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgen.cli.options import JsonOption, SetOption, SeveralWords, TrustOption
from edgen.cli.output import note, print_json, print_line, safe
from edgen.cli.progress import UNREADABLE
from edgen.cli.trusting import Trust
from edgen.errors import UsageError

if TYPE_CHECKING:
    from edgen.quality.results import Adherence, MeasureName, Quality
    from edgen.samples import Material

_NOTED_EVERY = 10_000  # conversations, where no person looks


class SeveralMeasures(SeveralWords):
    """`--only overview lengths RUN`: the first word that is no measure, nor a misspelt one, is a path."""

    option = "--only"

    def belongs(self, word: str) -> bool:
        from edgen.loading import nearest
        from edgen.quality.measure import NAMES

        names = [name.strip() for name in word.split(",")]
        if any(name in NAMES for name in names):
            return True
        return not Path(word).exists() and any("did you mean" in nearest(name, NAMES) for name in names)


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Runs, folders of shards, or files of records; several paths are one data set.",
            show_default=False,
        ),
    ],
    json: JsonOption = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE",
            help="Only these, one or several: overview, lengths, balance, diversity, duplicates, leakage, coverage, adherence, "
            "leaks, answers, probability, calibration.",
            show_default=False,
        ),
    ] = None,
    judge: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Have the job's judge read N conversations of the run (of each arm) for adherence; costs calls.",
            show_default=False,
        ),
    ] = None,
    set_: SetOption = None,
    trust_host: TrustOption = None,
) -> None:
    """Measure a data set: sizes, lengths, balance, diversity, duplicates, leakage, coverage, adherence and more.

    A run with arms is measured an arm at a time. Every definition, with its source, is in the output of --json.

    Example: edgen stats outputs/quickstart

    Example: edgen stats conversations_train*.json conversations_eval.json --only diversity leakage
    """
    wanted = _measures(only)
    if set_ and judge is None:
        raise UsageError(
            "--set goes with --judge: it sets keys of the job for the judge, such as backends.judge."
        )
    if judge is not None and wanted is not None and "adherence" not in wanted:
        raise UsageError(
            "--judge: the judge is asked about adherence; add --only adherence, or leave --only out."
        )
    by_judge = _judged(paths, judge, set_, Trust(trust_host)) if judge is not None else {}

    from edgen.rundir import RunDir
    from edgen.samples import materials

    with contextlib.ExitStack() as stack:
        for path in dict.fromkeys(paths):
            stack.enter_context(RunDir(path).read())
        found = {material.arm: _measured(material, wanted, by_judge) for material in materials(paths)}
    if json:
        print_json(_as_json(found, wanted))
        return
    _print(found, wanted)


def _measures(only: list[str] | None) -> list[MeasureName] | None:
    """The measures that `--only` names, also several behind one, with commas. Raises UsageError."""
    if not only:
        return None
    from edgen.loading import nearest
    from edgen.quality.measure import NAMES

    named = [name.strip() for text in only for name in text.split(",") if name.strip()]
    for name in named:
        if name not in NAMES:
            raise UsageError(f"--only {name}: no such measure{nearest(name, NAMES)}.")
    return [name for name in NAMES if name in named]


def _judged(
    paths: list[Path], sample: int, set_: list[str] | None, trust: Trust
) -> dict[str | None, Adherence]:
    """What the job's judge says of each arm, or of the run under None."""
    from edgen.cli.appraise import judged
    from edgen.config import load_job
    from edgen.rundir import RunDir

    if len(paths) != 1:
        raise UsageError("--judge: name one run; the judge is that of its job.")
    found = judged(paths[0], sample, set_, trust)
    rundir = RunDir(paths[0])
    arms = load_job(rundir.job).arms
    begun: list[str | None] = [arm for arm in arms if rundir.of(arm).ledger.exists()] if arms else [None]
    return dict(zip(begun, found, strict=True))


def _measured(
    material: Material, only: list[MeasureName] | None, by_judge: dict[str | None, Adherence]
) -> Quality:
    import msgspec

    from edgen.samples import quality_of

    with _telling(material) as tell:
        quality = quality_of(material, only, tell)
    if material.arm not in by_judge:
        return quality
    return msgspec.structs.replace(quality, adherence=(*quality.adherence, by_judge[material.arm]))


@contextlib.contextmanager
def _telling(material: Material) -> Iterator[Callable[[int], None]]:
    """What is told how many conversations are done: a bar where a person looks, else a line now and then."""
    if not sys.stderr.isatty():
        yield _noting(material.name)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=30), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(safe(f"measuring {material.name}"), total=material.count)

        def tell(done: int) -> None:
            with contextlib.suppress(*UNREADABLE):
                progress.update(task, completed=done)

        yield tell


def _noting(name: str) -> Callable[[int], None]:
    def tell(done: int) -> None:
        if done and done % _NOTED_EVERY == 0:
            note(f"{name}: {done:,} conversations read")

    return tell


def _as_json(found: dict[str | None, Quality], only: list[MeasureName] | None) -> dict[str, Any]:
    """One quality, or those of the arms by name; with `only`, no key of another measure."""
    import msgspec

    from edgen.quality.measure import NAMES

    plain: dict[str | None, Any] = {
        arm: {
            key: value
            for key, value in msgspec.to_builtins(quality).items()
            if only is None or key in only or key not in NAMES
        }
        for arm, quality in found.items()
    }
    one: dict[str, Any] = plain.get(None, {"arms": plain})
    return one


def _print(found: dict[str | None, Quality], only: list[MeasureName] | None) -> None:
    from edgen.quality.render import render

    for number, quality in enumerate(found.values()):
        if number:
            print_line()
            print_line("═" * 78)
            print_line()
        for line in render(quality, only):
            print_line(line)
