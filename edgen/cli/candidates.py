"""`edgen annotate --write`: have a model write texts for turns of a run (paraphrases, wrong replies), or
answer another asker's questions about turns or conversations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edgen.asking.options import AnnotateOptions, AskOptions, CandidateOptions, WriteOptions
from edgen.cli.output import format_cost, print_value
from edgen.core.errors import UsageError
from edgen.core.text import describe_counts

if TYPE_CHECKING:
    from edgen.api.candidates import WrittenCandidates
    from edgen.asking.declared import DeclaredAsker
    from edgen.runtime.control import Control
    from edgen.runtime.status import TasksStatus


def print_candidates(
    run: Path,
    writing: WriteOptions,
    asked: AnnotateOptions,
    control: Control,
    *,
    dry_run: bool,
    json: bool,
) -> None:
    """Have a model write texts for turns of a run, as `edgen annotate --write` does; with `dry_run`, print
    the calls."""
    from edgen.api.candidates import (
        estimate_candidates,
        require_candidates,
        write_for_run,
    )
    from edgen.asking.declared import DeclaredAsker
    from edgen.asking.registered import find_named_asker

    if len(asked.by) > 1:
        raise UsageError("--write takes one --backend: a single model writes the texts.")
    assert writing.write is not None, "the caller looks"
    shared = {name: getattr(asked, name) for name in AskOptions.__struct_fields__}
    if (kind := find_named_asker(writing.write, DeclaredAsker)) is not None:  # type: ignore[type-abstract]
        _refuse_texts(writing, asked)
        _print_asked(run, kind, AskOptions(**shared), "".join(asked.by), control, dry_run=dry_run, json=json)
        return
    given: dict[str, Any] = {"count": writing.texts, "after": writing.after}
    options = CandidateOptions(
        write=writing.write,
        **{name: number for name, number in given.items() if number is not None},
        agent=writing.agent,
        by="".join(asked.by),
        sample=asked.sample,
        **shared,
    )
    if dry_run:
        needs = estimate_candidates(run, options, control)
        print_value(needs, _render_needs(needs), json=json)
        return
    made = write_for_run(run, options, control)
    print_value(_as_json(made), _render(made), json=json)
    require_candidates(made)


def _refuse_texts(writing: WriteOptions, asked: AnnotateOptions) -> None:
    """Raise UsageError for the first option that applies only to texts."""
    given = {"texts": writing.texts, "after": writing.after, "agent": writing.agent, "sample": asked.sample}
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"--{name} is for texts, and --write {writing.write} writes none; leave it out.")


def _print_asked(
    run: Path,
    kind: type[DeclaredAsker],
    options: AskOptions,
    by: str,
    control: Control,
    *,
    dry_run: bool,
    json: bool,
) -> None:
    """Ask about each unit of a run; with `dry_run`, print the calls."""
    from edgen.asking.declared import ask_run, estimate_asking

    if dry_run:
        needs = estimate_asking(run, kind, control, options, by)
        print_value(needs, needs.lines(), json=json)
        return
    made = ask_run(run, kind, control, options, by)
    status = made.status
    lines = [
        f"run        {run}",
        f"asker      {status.asker}: {status.answered:,} of {status.planned:,} answered, {status.pending:,} pending",
        *render_tasks(status),
    ]
    if made.lines is not None:
        lines.append(f"file       {made.file}")
    facts = {"run": str(run), **msgspec.to_builtins(status), "lines": made.lines, "file": str(made.file)}
    print_value(facts, lines, json=json)
    made.require_answers()


def render_tasks(status: TasksStatus, indent: str = "") -> Iterator[str]:
    """Yield the lines on an asker's tasks without an answer, and on its calls."""
    calls, cost = status.calls, format_cost(status.cost_usd)
    yield f"{indent + 'rejected':<10} {describe_counts(status.rejected)}"
    yield f"{indent + 'failed':<10} {describe_counts(status.failed)}"
    yield f"{indent + 'calls':<10} {calls.made:,} made, {calls.replayed:,} replayed, cost {cost}"


def _as_json(made: WrittenCandidates) -> dict[str, Any]:
    return {
        "run": str(made.run),
        **msgspec.to_builtins(made.writer),
        "totals": msgspec.to_builtins(made.totals),
        "file": str(made.file),
    }


def _render(made: WrittenCandidates) -> Iterator[str]:
    one, totals = made.writer, made.totals
    yield f"run        {made.run}"
    yield (
        f"writer     {one.writer}: {one.writes} for {one.written:,} of {one.planned:,} turns, "
        f"{one.pending:,} pending"
    )
    yield from render_tasks(one)
    if totals is not None:
        short = f"; {totals.short:,} turns have fewer than {made.options.count}" if totals.short else ""
        yield f"dropped    {describe_counts(totals.dropped)}"
        yield f"texts      {totals.texts:,} for {totals.turns:,} turns{short}"
        yield f"file       {made.file}"


def _render_needs(needs: dict[str, Any]) -> Iterator[str]:
    yield f"run        {needs['run']}"
    yield (
        f"writer     {needs['writer']}: {needs['writes']} for {needs['to_write']:,} turns to write, "
        f"{needs['there']:,} stored already"
    )
    yield f"calls      {needs['calls']['expected']:,}, at most {needs['calls']['at_most']:,}"
