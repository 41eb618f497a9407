"""`edgen annotate --write`: texts that a model writes for turns of a run: paraphrases, or wrong replies."""

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
    from edgen.runtime.control import Control


def print_candidates(
    run: Path,
    writing: WriteOptions,
    asked: AnnotateOptions,
    control: Control,
    *,
    dry_run: bool,
    json: bool,
) -> None:
    """Have a model write texts for turns of a run, or print what that would call, as `edgen annotate --write`
    does."""
    from edgen.api.candidates import (
        estimate_candidates,
        require_candidates,
        write_for_run,
    )

    if len(asked.by) > 1:
        raise UsageError("--write takes one --backend: a single model writes the texts.")
    assert writing.write is not None, "the caller looks"
    shared = {name: getattr(asked, name) for name in AskOptions.__struct_fields__}
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
    yield f"rejected   {describe_counts(one.rejected)}"
    yield f"failed     {describe_counts(one.failed)}"
    yield (
        f"calls      {one.calls.made:,} made, {one.calls.replayed:,} replayed, cost "
        f"{format_cost(one.cost_usd)}"
    )
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
