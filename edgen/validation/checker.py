"""Checks of records: schema first, then the rules, then the whole set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from edgen.validation.findings import Finding, Vocabulary, quote
from edgen.validation.rules import rule_findings
from edgen.validation.schema import CONVERSATION, conforms, schema_findings


def problems(
    record: Any,
    number: int | None = None,
    vocabulary: Vocabulary | None = None,
    schema: str = CONVERSATION,
    begins_anew: Callable[[Any], bool] = lambda _: False,
) -> list[Finding]:
    """Return all problems of one decoded record, including warnings. `begins_anew` as in `rule_findings`."""
    broken = [] if conforms(record, schema) else schema_findings(record, number, schema)
    return broken + rule_findings(record, number, vocabulary, begins_anew)


class FileReport(msgspec.Struct, frozen=True):
    """The findings in one file; `valid` counts its records without an error."""

    path: str
    records: int
    valid: int
    problems: tuple[Finding, ...]


class Ids:
    """The ids seen so far, with the first place of each."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, int]] = {}

    def repeated(self, record: Any, path: str, number: int) -> str | None:
        """Return the problem of this record's id, None if it is new or missing."""
        identifier = record.get("id") if isinstance(record, dict) else None
        if not isinstance(identifier, str):
            return None
        first_path, first = self._first.setdefault(identifier, (path, number))
        if (first_path, first) == (path, number):
            return None
        where = f"record {first}" if first_path == path else f"record {first} of {first_path}"
        return f"{quote(identifier)} is also the id of {where}"


class Checker:
    """A checker of a data set's files that also finds repeated ids across them."""

    def __init__(
        self,
        schema_of: Callable[[Any], str] = lambda _: CONVERSATION,
        more: Callable[[Any], Iterable[tuple[str, str]]] = lambda _: (),
        begins_anew: Callable[[Any, Any], bool] = lambda _record, _turn: False,
    ) -> None:
        """Set up the checks: `schema_of` names the schema of a decoded record, `more` yields further
        problems, and `begins_anew` decides which turns may follow one of the same role."""
        self._schema_of, self._more, self._begins_anew = schema_of, more, begins_anew
        self._ids = Ids()

    def file(
        self, path: str, records: Iterable[msgspec.Raw], vocabulary: Vocabulary | None = None
    ) -> FileReport:
        """Return the report on the records of one file, called `path` in it."""
        findings: list[Finding] = []
        count = valid = 0
        for number, raw in enumerate(records):
            found = self._record(path, number, raw, vocabulary)
            findings += found
            count += 1
            valid += not any(f.severity == "error" for f in found)
        return FileReport(path, count, valid, tuple(findings))

    def _record(
        self, path: str, number: int, raw: msgspec.Raw, vocabulary: Vocabulary | None
    ) -> list[Finding]:
        try:
            record = decode(raw)
        except ValueError as problem:
            return [Finding.of(number, "$", str(problem), "unreadable")]
        anew = partial(self._begins_anew, record)
        found = problems(record, number, vocabulary, self._schema_of(record), anew)
        found += [Finding.of(number, path_, problem, "layout") for path_, problem in self._more(record)]
        if repeated := self._ids.repeated(record, path, number):
            found.append(Finding.of(number, "$.id", repeated, "duplicate_id"))
        return found


def decode(raw: msgspec.Raw) -> Any:
    """Decode one record to plain values. Raises ValueError with the reason as a clause."""
    try:
        return msgspec.json.decode(raw)
    except RecursionError:
        raise ValueError("the record is nested too deeply") from None
    except ValueError as problem:
        raise ValueError(f"the record cannot be decoded: {problem}") from None
