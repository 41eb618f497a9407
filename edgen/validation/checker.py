"""Records to findings: schema first, then the rules, then what only the whole set shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from edgen.validation.findings import Finding, Vocabulary, quote
from edgen.validation.rules import rule_findings
from edgen.validation.schema import EDUCATION, conforms, schema_findings


def problems(
    record: Any,
    number: int | None = None,
    vocabulary: Vocabulary | None = None,
    schema: str = EDUCATION,
    begins_anew: Callable[[Any], bool] = lambda _: False,
) -> list[Finding]:
    """All that is wrong with one decoded record, by itself. Empty: nothing, not even a warning. `begins_anew` as in
    `rule_findings`."""
    broken = [] if conforms(record, schema) else schema_findings(record, number, schema)
    return broken + rule_findings(record, number, vocabulary, begins_anew)


class FileReport(msgspec.Struct, frozen=True):
    """What was found in one file; `valid` counts its records without an error."""

    path: str
    records: int
    valid: int
    problems: tuple[Finding, ...]


class Ids:
    """The ids seen so far, and where each one stood first."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, int]] = {}

    def repeated(self, record: Any, path: str, number: int) -> str | None:
        """What is wrong with the id of this record, None if it is new or there is none."""
        identifier = record.get("id") if isinstance(record, dict) else None
        if not isinstance(identifier, str):
            return None
        first_path, first = self._first.setdefault(identifier, (path, number))
        if (first_path, first) == (path, number):
            return None
        where = f"record {first}" if first_path == path else f"record {first} of {first_path}"
        return f"{quote(identifier)} is also the id of {where}"


class Checker:
    """Checks the files of one data set, one after the other, and notices ids used twice among them."""

    def __init__(
        self,
        schema_of: Callable[[Any], str] = lambda _: EDUCATION,
        more: Callable[[Any], Iterable[tuple[str, str]]] = lambda _: (),
        begins_anew: Callable[[Any, Any], bool] = lambda _record, _turn: False,
    ) -> None:
        """`schema_of` names the schema that a decoded record has to satisfy, `more` what else is wrong with it, and
        `begins_anew` tells which of its turns may stand behind one of the same role."""
        self._schema_of, self._more, self._begins_anew = schema_of, more, begins_anew
        self._ids = Ids()

    def file(
        self, path: str, records: Iterable[msgspec.Raw], vocabulary: Vocabulary | None = None
    ) -> FileReport:
        """The report on the records of one file; `path` is what the report calls it."""
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
    """One record as plain values. Raises ValueError with a clause about what is in the way."""
    try:
        return msgspec.json.decode(raw)
    except RecursionError:
        raise ValueError("the record is nested too deeply") from None
    except ValueError as problem:
        raise ValueError(f"the record cannot be decoded: {problem}") from None
