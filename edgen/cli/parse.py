"""`edgen parse`: a raw reply to turns and probability; with --jsonl, one answer for every line.

A line that is no such object is answered as rejected ("bad_line"), so that answers and lines stay
in step. Memory does not grow with the number of lines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import typer

from edgen.cli.output import print_json
from edgen.errors import DataError
from edgen.loading import MAX_BYTES, read_text
from edgen.model import Rejection
from edgen.transcript import read

STDIN = Path("-")


class Line(msgspec.Struct, frozen=True):
    """One line of --jsonl input. Other keys are allowed and not looked at."""

    reply: str
    id: str | int | None = None
    finish_reason: str | None = None
    refusal: str | None = None


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A file with the raw reply; - reads standard input.", show_default=False
        ),
    ],
    jsonl: Annotated[
        bool,
        typer.Option("--jsonl", help='Read one {"id", "reply"} object a line and answer each with a line.'),
    ] = False,
) -> None:
    """Read a model's raw reply to turns, the probability and who ended it. Calls nothing.

    Prints JSON. Exits with 3 if a reply is no conversation.

    Example: edgen parse reply.txt

    Example: edgen parse --jsonl replies.jsonl > turns.jsonl
    """
    rejected = _lines(file) if jsonl else _single(file)
    if rejected:
        raise typer.Exit(3)


def answer(text: str, finish_reason: str | None = None, refusal: str | None = None) -> dict[str, Any]:
    """What is printed for one reply, but for its id."""
    result = read(text, finish_reason=finish_reason or "stop", refusal=refusal)
    if isinstance(result, Rejection):
        return _rejected(result.reason, result.detail)
    return {
        "status": "ok",
        "turns": msgspec.to_builtins(result.turns),
        "probability": result.probability,
        "ended_by": result.ended_by,
        "repairs": list(result.repairs),
    }


def _rejected(reason: str, detail: str) -> dict[str, Any]:
    return {"status": "rejected", "reason": str(reason), "detail": detail}


def _single(file: Path) -> bool:
    result = answer(_stdin_text() if file == STDIN else read_text(file, DataError))
    print_json(result)
    return bool(result["status"] != "ok")


def _stdin_text() -> str:
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    source = "standard input"
    if len(data) > MAX_BYTES:
        raise DataError(source, f"it is larger than {MAX_BYTES // 1024 // 1024} MiB, the most that is read.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise DataError(source, f"byte {problem.start} is not UTF-8; send it as UTF-8.") from None


def _lines(file: Path) -> bool:
    """Answer every line as it comes. Whether any of them was rejected."""
    rejected = False
    encode = msgspec.json.Encoder().encode
    with _open(file) as stream:
        for data in _limited(stream):
            result = _answer_line(data)
            rejected = rejected or result["status"] != "ok"
            sys.stdout.write(encode(result).decode() + "\n")
            sys.stdout.flush()
    return rejected


def _open(file: Path) -> AbstractContextManager[BinaryIO]:
    if file == STDIN:
        return nullcontext(sys.stdin.buffer)
    try:
        return file.open("rb")
    except FileNotFoundError:
        raise DataError(str(file), "there is no such file.") from None
    except IsADirectoryError:
        raise DataError(str(file), "this is a folder, not a file.") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise DataError(str(file), f"it cannot be read: {reason}.") from None


def _limited(stream: BinaryIO) -> Iterator[bytes | None]:
    """The lines without their ends; None for one that is longer than what is read."""
    while data := stream.readline(MAX_BYTES + 2):
        if len(data) <= MAX_BYTES + 1 and (data.endswith(b"\n") or len(data) <= MAX_BYTES):
            yield data.rstrip(b"\r\n")
            continue
        while data and not data.endswith(b"\n"):
            data = stream.readline(MAX_BYTES)
        yield None


def _answer_line(data: bytes | None) -> dict[str, Any]:
    if data is None:
        detail = f"the line is longer than {MAX_BYTES // 1024 // 1024} MiB, the most that is read"
        return {"id": None, **_rejected("bad_line", detail)}
    try:
        line = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        return {"id": _id_of(data), **_rejected("bad_line", _detail(problem))}
    return {"id": line.id, **answer(line.reply, line.finish_reason, line.refusal)}


def _detail(problem: Exception) -> str:
    if isinstance(problem, UnicodeDecodeError):
        return "the line is not UTF-8"
    if isinstance(problem, RecursionError):
        return "the line is nested too deeply"
    return f'expected an object like {{"id": "…", "reply": "…"}}: {problem}'


def _id_of(data: bytes) -> str | int | None:
    """The id of a line that is an object with other faults; None if there is none to be had."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None
