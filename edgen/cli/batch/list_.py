"""`edgen batch list`: every batch of a run, from its ledgers alone; nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from edgen.cli.options.common import JsonOption, RunArgument
from edgen.cli.output import print_value
from edgen.core.durations import span

if TYPE_CHECKING:
    from edgen.api.batches import BatchFacts


def command(run: RunArgument, json: JsonOption = False) -> None:
    """Show every batch of a run and how it stands, as the run has noted it. Nothing is asked of the provider.

    Example: edgen batch list outputs/nightly
    """
    from edgen.api.batches import list_batches

    batches = list_batches(run)
    print_value({"run": str(run), "batches": batches}, _render(batches), json=json)


def _render(batches: list[BatchFacts]) -> Iterator[str]:
    if not batches:
        yield "This run has had no batches; `edgen generate JOB --via batch` makes them."
        return
    yield f"{'batch':<18}{'state':<18}{'round':>5}{'requests':>10}  {'age':<8} id"
    for batch in batches:
        name, place = f"{batch.number} {batch.of}".strip(), batch.id or batch.file
        # The one word with which the provider ended a batch stands behind its state.
        word = batch.message if batch.state == "read" and " " not in (batch.message or " ") else None
        state = f"{batch.state} ({word})" if word else batch.state
        yield f"{name:<18}{state:<18}{batch.round:>5}{batch.requests:>10,}  {span(batch.age_s):<8} {place}"
        if batch.message and not word:
            yield f"{'':<18}{batch.message}"
