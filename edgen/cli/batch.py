"""`edgen batch`: list, cancel or read the batches of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from typer import Argument

from edgen.cli.options import CommandGroup, JsonOption, RunArgument
from edgen.cli.output import note, print_value
from edgen.core.options import TrustHosts
from edgen.core.text import format_compact_duration

if TYPE_CHECKING:
    from edgen.api.batches import BatchFacts, Cancelled, ReadResults

app = CommandGroup(
    "List, cancel or read the batches that a run has at a provider.\n\n"
    "Example: edgen batch list outputs/nightly"
)


@app.command("list")
def list_(run: RunArgument, json: JsonOption = False) -> None:
    """List every batch of a run with its state, as the run last noted it.

    It makes no call to the provider.

    Example: edgen batch list outputs/nightly
    """
    from edgen.api.batches import list_batches

    batches = list_batches(run)
    print_value({"run": str(run), "batches": batches}, _render_batches(batches), json=json)


def _render_batches(batches: list[BatchFacts]) -> Iterator[str]:
    if not batches:
        yield "This run has no batches; `edgen generate JOB --via batch` makes them."
        return
    yield f"{'batch':<18}{'state':<18}{'round':>5}{'requests':>10}  {'age':<8} id"
    for batch in batches:
        name, place = f"{batch.number} {batch.of}".strip(), batch.id or batch.file
        # The state is followed by the provider's one word for how a batch ended.
        word = batch.message if batch.state == "read" and " " not in (batch.message or " ") else None
        state = f"{batch.state} ({word})" if word else batch.state
        yield f"{name:<18}{state:<18}{batch.round:>5}{batch.requests:>10,}  {format_compact_duration(batch.age_s):<8} {place}"
        if batch.message and not word:
            yield f"{'':<18}{batch.message}"


class CancelOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of cancelling batches."""

    trust_hosts: TrustHosts = ()


@app.command()
def cancel(
    run: RunArgument,
    numbers: Annotated[
        list[int] | None,
        Argument(
            metavar="[NUMBER]...",
            help="Numbers of batches, as `edgen batch list` prints them.  [default: all]",
        ),
    ] = None,
    *,
    options: CancelOptions,
    json: JsonOption = False,
) -> None:
    """Cancel the open batches of a run at the provider.

    It waits for their end and reads their answers. The next start of the run sends the other requests again.
    Unsent request files and lost batches are given up.

    Example: edgen batch cancel outputs/nightly
    """
    from edgen.api.batches import cancel_batches
    from edgen.cli.control import make_control
    from edgen.runtime.options import WorkOptions

    control = make_control(WorkOptions(trust_hosts=options.trust_hosts))
    cancelled = cancel_batches(run, numbers or (), control)
    print_value(cancelled, [_describe_cancelled(cancelled)], json=json)


def _describe_cancelled(cancelled: Cancelled) -> str:
    if not cancelled.ended:
        return "This run has no open batch."
    return (
        f"{cancelled.ended} batch{'es' if cancelled.ended > 1 else ''} ended; {cancelled.answered:,} "
        "answers were read "
        "and kept. `edgen generate` sends the requests without an answer again; `edgen generate --via "
        "batch` does so in a batch."
    )


@app.command()
def read(
    run: RunArgument,
    files: Annotated[list[Path], Argument(metavar="FILES...", help="Result files, JSON Lines.")],
    json: JsonOption = False,
) -> None:
    """Read result files of batches into a run.

    The files come from a provider or from `vllm run-batch`, for the request files that `edgen generate JOB
    --via batch --write-only DIR` wrote. Reading a result file twice changes nothing.

    Example: edgen batch read outputs/nightly results/*.jsonl
    """
    from edgen.api.batches import read_results

    read = read_results(run, files)
    print_value(read, _render_read(read), json=json)
    if not json:
        still_out = f"{read.out:,} requests of this run have no answer yet."
        settled = "All open requests are settled; run the same `edgen generate` command for the next round."
        note(still_out if read.out else settled)
    read.require_own()


def _render_read(read: ReadResults) -> Iterator[str]:
    for file in read.files:
        counts = ((getattr(file, what), words) for what, words in _WORDS.items())
        said = [f"{count:,} {words}" for count, words in counts if count]
        yield f"{file.path}: {', '.join(said) or 'empty'}"


_WORDS = {
    "answered": "answers",
    "known": "known before",
    "failed": "errors, to be retried",
    "unanswered": "never processed, to be retried",
    "strangers": "of another run",
    "unreadable": "that are not result lines",
}
