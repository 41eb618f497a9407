"""`edgen parse`: a raw reply to turns and probability; with --jsonl, one answer for every line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from edgen.cli.output import print_json, print_json_line


def command(
    file: Annotated[
        Path, Argument(metavar="FILE", help="A file with the raw reply; - reads standard input.")
    ],
    jsonl: Annotated[
        bool, Option("--jsonl", help='Read one {"id", "reply"} object a line and answer each with a line.')
    ] = False,
    role: Annotated[
        list[str] | None,
        Option(
            metavar="ROLE=WORD",
            help="What the replies call Teacher or Student, as in Teacher=Tutor; may be repeated. Words of many "
            "languages are known.",
        ),
    ] = None,
) -> None:
    """Read a model's raw reply to turns, the probability and who ended it. Calls nothing.

    Prints JSON. Exits with 3 if a reply is no conversation.

    Example: edgen parse reply.txt

    Example: edgen parse --jsonl replies.jsonl > turns.jsonl

    Example: edgen parse reply.txt --role Teacher=Tutor --role "Student=Learner"
    """
    from edgen.api.parsing import parse_file, parse_lines, read_role_words

    words = read_role_words(role or [])
    source = sys.stdin.buffer if file == Path("-") else file
    rejected = False
    for answer in parse_lines(source, words) if jsonl else [parse_file(source, words)]:
        rejected = rejected or answer["status"] != "ok"
        (print_json_line if jsonl else print_json)(answer)
    if rejected:
        raise Exit(3)
