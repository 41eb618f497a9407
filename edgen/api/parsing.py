"""Read raw replies as turns and a probability: one reply, or one per line of a file.

An invalid line gets the answer rejected ("bad_line"), so that answers and lines stay in step. Memory does not
grow with the number of lines.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from edgen.config import find_role_word_problems
from edgen.core.errors import DataError, UsageError
from edgen.core.files import explain_read_errors
from edgen.core.values import ROLES, Rejection
from edgen.core.yaml_values import MAX_BYTES, read_text, suggest_file
from edgen.reading import read
from edgen.reading.roles import OwnWords

_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLOCKED = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"})


class ReplyLine(msgspec.Struct, frozen=True):
    """One line of input. Other keys are allowed and ignored."""

    reply: str
    id: str | int | None = None
    finish_reason: str | None = None
    refusal: str | None = None


_KEYS = ReplyLine.__struct_fields__


def read_role_words(assignments: Iterable[str]) -> OwnWords:
    """Return the words for each side, given as `ROLE=WORD`. Raises UsageError for words that a job could not
    have either."""
    words: dict[str, list[str]] = {role: [] for role in ROLES}
    for assignment in assignments:
        role, equals, word = assignment.partition("=")
        if not equals or role.strip().capitalize() not in words:
            raise UsageError(f"--role {assignment}: expected ROLE=WORD, as in --role Teacher=Tutor.")
        words[role.strip().capitalize()].append(word.strip())
    if wrong := find_role_word_problems(words):
        raise UsageError(f"--role {'; '.join(f'{path}: {message}' for path, message in wrong)}.")
    return tuple((role, tuple(words[role])) for role in ROLES if words[role])


def parse_reply(
    text: str, finish_reason: str | None = None, refusal: str | None = None, words: OwnWords = ()
) -> dict[str, Any]:
    """Return the answer about one reply, without its id. `finish_reason` is the word of any service; an
    unknown one means stop."""
    reason = (finish_reason or "").lower()
    finish = "length" if reason in _CUT_OFF else "content_filter" if reason in _BLOCKED else "stop"
    result = read(text, finish_reason=finish, refusal=refusal, words=words)
    if isinstance(result, Rejection):
        return _reject(result.reason, result.detail)
    return {
        "status": "ok",
        "turns": msgspec.to_builtins(result.turns),
        "probability": result.probability,
        "ended_by": result.ended_by,
        "repairs": list(result.repairs),
    }


def _reject(reason: str, detail: str) -> dict[str, Any]:
    return {"status": "rejected", "reason": str(reason), "detail": detail}


def parse_file(file: Path | BinaryIO, words: OwnWords = ()) -> dict[str, Any]:
    """Read a file that holds one raw reply. Raises DataError for a file that is too large or not text."""
    if isinstance(file, Path):
        return parse_reply(read_text(file, DataError), words=words)
    source, data = "standard input", file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(source, f"it is larger than {MAX_BYTES // 1024 // 1024} MiB, the most that is read.")
    try:
        return parse_reply(data.decode("utf-8-sig"), words=words)
    except UnicodeDecodeError as problem:
        raise DataError(source, f"byte {problem.start} is not UTF-8; send it as UTF-8.") from None


def parse_lines(file: Path | BinaryIO, words: OwnWords = ()) -> Iterator[dict[str, Any]]:
    """Yield an answer for every line of a file. Raises DataError for an unreadable file."""
    with _open(file) if isinstance(file, Path) else contextlib.nullcontext(file) as stream:
        yield from (_parse_line(data, words) for data in _read_lines(stream))


def _open(file: Path) -> BinaryIO:
    with explain_read_errors(str(file), DataError, partial(suggest_file, file)):
        return file.open("rb")


def _read_lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines without their ends; None for one above the length limit."""
    while data := stream.readline(MAX_BYTES + 2):
        if len(data) <= MAX_BYTES + 1 and (data.endswith(b"\n") or len(data) <= MAX_BYTES):
            yield data.rstrip(b"\r\n")
            continue
        while data and not data.endswith(b"\n"):
            data = stream.readline(MAX_BYTES)
        yield None


def _parse_line(data: bytes | None, words: OwnWords) -> dict[str, Any]:
    if data is None:
        detail = f"the line is longer than {MAX_BYTES // 1024 // 1024} MiB, the most that is read"
        return {"id": None, **_reject("bad_line", detail)}
    data = data.removeprefix(b"\xef\xbb\xbf")
    value = None
    try:
        line = msgspec.json.decode(data, type=ReplyLine)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        # Other programs write lone surrogates and NaN; keys that edgen ignores may hold them.
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(data)
        known = {key: value[key] for key in _KEYS if key in value} if isinstance(value, dict) else value
        try:
            line = msgspec.convert(known, ReplyLine)
        except msgspec.MsgspecError as other:
            name = known.get("id") if isinstance(known, dict) else None
            found = name if isinstance(name, str | int) and not isinstance(name, bool) else None
            detail = _explain(problem if value is None else other)
            return {"id": _make_printable(found), **_reject("bad_line", detail)}
    answer = parse_reply(line.reply, line.finish_reason, line.refusal, words)
    return {"id": _make_printable(line.id), **answer}


def _explain(problem: Exception) -> str:
    if isinstance(problem, UnicodeDecodeError):
        return "the line is not UTF-8"
    if isinstance(problem, RecursionError):
        return "the line is nested too deeply"
    return f'expected an object like {{"id": "…", "reply": "…"}}: {problem}'


def _make_printable(name: str | int | None) -> str | int | None:
    """Return an id without characters that JSON in UTF-8 cannot hold."""
    if isinstance(name, int) and not -(2**63) <= name < 2**64:
        return str(name)
    return _SURROGATE.sub("\ufffd", name) if isinstance(name, str) else name
