"""`edgen show`: one conversation of a run, or one scenario under every arm, with what became of it."""

from __future__ import annotations

import shutil
from typing import Annotated

from typer import Argument, Option

from edgen.cli.options import JsonOption, RunArgument
from edgen.cli.output import note, print_value


def command(
    run: RunArgument,
    named: Annotated[
        str,
        Argument(
            metavar="ID",
            help="A conversation as the shards call it (quickstart-000137-r0), or the number of a scenario (137).",
        ),
    ],
    raw: Annotated[bool, Option("--raw", help="Also the raw replies, as the model gave them.")] = False,
    json: JsonOption = False,
) -> None:
    """Show a conversation: its scenario, what was said, what it came to, and the pairs it is in.

    A scenario's number shows all its conversations, those of a run's arms side by side. What was rejected or
    failed is shown with the reason and the last reply.

    Example: edgen show outputs/quickstart 137

    Example: edgen show outputs/quickstart quickstart-000137-r0 --raw
    """
    from edgen.cli.transcript import conversations_as_json, render_conversations
    from edgen.evaluation.data_sets.one_conversation import find_conversations
    from edgen.store.run_folder import RunFolder

    found, pairs, notes = find_conversations(RunFolder(run), named)
    width = shutil.get_terminal_size().columns
    lines = render_conversations(found, pairs, raw=raw, width=width)
    print_value(conversations_as_json(run, found, pairs, raw=raw), lines, json=json)
    for words in notes:
        note(f"edgen: {words}")
