"""`edgen parse`: a raw reply to turns and probability; with --jsonl, one answer for every line.

A line that is no such object is answered as rejected ("bad_line"), so that answers and lines stay
in step. Memory does not grow with the number of lines.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import typer

from edgen.cli.output import print_json, print_json_line
from edgen.errors import DataError, UsageError
from edgen.loading import MAX_BYTES, read_text
from edgen.model import ROLES, Rejection
from edgen.transcript import read
from edgen.transcript.abroad import NO_WORDS, OwnWords

STDIN = Path("-")
_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLOCKED = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"})


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
    role: Annotated[
        list[str] | None,
        typer.Option(
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
    words = _words(role or [])
    rejected = _lines(file, words) if jsonl else _single(file, words)
    if rejected:
        raise typer.Exit(3)


def _words(given: list[str]) -> OwnWords:
    """The words for each side. Raises UsageError for one that a job could not have either."""
    from edgen.config import role_word_problems

    words: dict[str, list[str]] = {role: [] for role in ROLES}
    for assignment in given:
        role, equals, word = assignment.partition("=")
        if not equals or role.strip().capitalize() not in words:
            raise UsageError(f"--role {assignment}: expected ROLE=WORD, as in --role Teacher=Tutor.")
        words[role.strip().capitalize()].append(word.strip())
    if wrong := role_word_problems(words):
        raise UsageError(f"--role {'; '.join(f'{path}: {message}' for path, message in wrong)}.")
    return tuple((role, tuple(words[role])) for role in ROLES if words[role])


def answer(
    text: str, finish_reason: str | None = None, refusal: str | None = None, words: OwnWords = NO_WORDS
) -> dict[str, Any]:
    """What is printed for one reply, but for its id."""
    result = read(text, finish_reason=_finish(finish_reason), refusal=refusal, words=words)
    if isinstance(result, Rejection):
        return _rejected(result.reason, result.detail)
    return {
        "status": "ok",
        "turns": msgspec.to_builtins(result.turns),
        "probability": result.probability,
        "ended_by": result.ended_by,
        "repairs": list(result.repairs),
    }


def _finish(reason: str | None) -> str:
    """The reason as the reader knows it, whichever service's word it is; an unknown one means stop."""
    lowered = (reason or "").lower()
    if lowered in _CUT_OFF:
        return "length"
    return "content_filter" if lowered in _BLOCKED else "stop"


def _rejected(reason: str, detail: str) -> dict[str, Any]:
    return {"status": "rejected", "reason": str(reason), "detail": detail}


def _single(file: Path, words: OwnWords) -> bool:
    text = _stdin_text() if file == STDIN else read_text(file, DataError)
    result = answer(text, words=words)
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


def _lines(file: Path, words: OwnWords) -> bool:
    """Answer every line as it comes. Whether any of them was rejected."""
    rejected = False
    with _open(file) as stream:
        for data in _limited(stream):
            result = _answer_line(data, words)
            rejected = rejected or result["status"] != "ok"
            print_json_line(result)
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


def _answer_line(data: bytes | None, words: OwnWords) -> dict[str, Any]:
    if data is None:
        detail = f"the line is longer than {MAX_BYTES // 1024 // 1024} MiB, the most that is read"
        return {"id": None, **_rejected("bad_line", detail)}
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        line = msgspec.json.decode(data, type=Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        value = _lenient(data)
        try:
            line = msgspec.convert(_known(value), Line)
        except msgspec.MsgspecError as other:
            detail = _detail(problem if value is None else other)
            return {"id": _id_of(value), **_rejected("bad_line", detail)}
    return {"id": _printable(line.id), **answer(line.reply, line.finish_reason, line.refusal, words)}


def _detail(problem: Exception) -> str:
    if isinstance(problem, UnicodeDecodeError):
        return "the line is not UTF-8"
    if isinstance(problem, RecursionError):
        return "the line is nested too deeply"
    return f'expected an object like {{"id": "…", "reply": "…"}}: {problem}'


def _lenient(data: bytes) -> Any:
    """The value of a line with half of a surrogate pair or NaN in it, which other writers allow; None if
    the line is no JSON for all that."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _known(value: Any) -> Any:
    """An object's keys that are looked at: another one may hold half of a character, of which nothing can be made."""
    return (
        {key: value[key] for key in Line.__struct_fields__ if key in value}
        if isinstance(value, dict)
        else value
    )


def _id_of(value: Any) -> str | int | None:
    """The id of an object with other faults; None if there is none to be had."""
    found = value.get("id") if isinstance(value, dict) else None
    return _printable(found) if isinstance(found, str | int) and not isinstance(found, bool) else None


def _printable(name: str | int | None) -> str | int | None:
    """An id that can be written as JSON in UTF-8."""
    if isinstance(name, int) and not -(2**63) <= name < 2**64:
        return str(name)
    return _SURROGATE.sub("\ufffd", name) if isinstance(name, str) else name
