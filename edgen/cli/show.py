"""`edgen show`: one conversation of a run, or one scenario under every arm, with its outcome."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import msgspec
from typer import Argument

from edgen.cli.options import JsonOption, RunArgument
from edgen.cli.output import note, print_value
from edgen.core.errors import UsageError
from edgen.core.options import option


class ShowOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one conversation."""

    raw: Annotated[bool, option("Also show raw replies.")] = False


def command(
    run: RunArgument,
    named: Annotated[
        str | None,
        Argument(
            metavar="ID",
            help="An id (quickstart-000137-r0), a scenario's number (137), or `last` for the latest "
            "raw reply.",
        ),
    ] = None,
    *,
    options: ShowOptions,
    json: JsonOption = False,
) -> None:
    """Show one conversation of a run, with its outcome and labels.

    It prints the scenario, turns, preference pairs, and the evidence of their labels; a star marks the
    decisive one. A scenario's number shows all its conversations, arms side by side. A rejected or failed one
    comes with the reason and the last reply.

    Example: edgen show outputs/quickstart 137

    Example: edgen show outputs/quickstart quickstart-000137-r0 --raw

    Example: edgen show outputs/quickstart last
    """
    from edgen.store.run_folder import RunFolder

    if named is None:
        RunFolder(run).require()
        raise UsageError(
            f"{run}: name a conversation of it by its id or its scenario's number, as in `edgen show {run} "
            "0`; `last` is the latest raw reply."
        )
    if named == "last":
        _show_latest(run, json=json)
        return
    from edgen.cli.transcript import describe_as_json, render_conversations
    from edgen.evaluation.data_sets.one_conversation import find_conversations

    found, pairs, rollouts, notes = find_conversations(RunFolder(run), named)
    raw = options.raw
    width = shutil.get_terminal_size().columns
    lines = render_conversations(found, pairs, rollouts, raw=raw, width=width)
    print_value(describe_as_json(run, found, pairs, rollouts, raw=raw), lines, json=json)
    for words in notes:
        note(f"edgen: {words}")


def _show_latest(run: Path, *, json: bool) -> None:
    """Show the latest stored reply of a run, or of one of its ledgers if `run` is a ledger."""
    from edgen.store.latest_reply import find_latest

    latest = find_latest(run)
    lines = [
        f"ledger     {latest.ledger}",
        f"answered   {latest.at}",
        (
            f"call       scenario {latest.scenario}, task {latest.task}, step {latest.step}, attempt "
            f"{latest.attempt}"
        ),
        f"model      {latest.model or 'unknown'}, ended by {latest.finish_reason}",
        "",
        *([latest.refusal] if latest.refusal else []),
        *(latest.text.splitlines() or ["(empty)"]),
    ]
    print_value(latest, lines, json=json)
