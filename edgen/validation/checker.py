"""Checks of records: schema first, then the rules, then the whole set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core.digest import DigestTable, hash64
from edgen.validation.findings import Finding, Vocabulary, quote
from edgen.validation.layout import LayoutChecks
from edgen.validation.rules import find_rule_violations
from edgen.validation.schema import CONVERSATION, conforms, find_schema_violations
from edgen.validation.stream import Piece


def find_problems(
    record: Any,
    number: int | None = None,
    vocabulary: Vocabulary | None = None,
    schema: str = CONVERSATION,
    begins_anew: Callable[[Any], bool] = lambda _: False,
    values_key: str | None = None,
) -> list[Finding]:
    """Return all problems of one decoded record, including warnings. `begins_anew` and `values_key` as in
    `find_rule_violations`."""
    broken = [] if conforms(record, schema) else find_schema_violations(record, number, schema)
    return broken + find_rule_violations(record, number, vocabulary, begins_anew, values_key)


MOST = 10_000  # most kept findings of a kind per file; the others are counted


class FileReport(msgspec.Struct, frozen=True):
    """The findings in one file; `valid` counts its records without an error. `more`: the number of findings
    that were not kept, by kind."""

    path: str
    records: int
    valid: int
    problems: tuple[Finding, ...]
    more: dict[str, int] | UnsetType = UNSET

    @property
    def counts(self) -> Counter[str]:
        """The number of all findings of each kind."""
        found = Counter(problem.kind for problem in self.problems)
        if self.more is not UNSET:
            found.update(self.more)
        return found


class _Kept:
    """Findings of one file: the first of each kind, and counts of the others."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.more: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def add(self, found: Iterable[Finding]) -> None:
        for finding in found:
            if self._counts[finding.kind] < MOST:
                self._counts[finding.kind] += 1
                self.findings.append(finding)
            else:
                self.more[finding.kind] += 1


class SeenIds:
    """The ids seen so far, each with its first place. An id takes about 27 bytes."""

    def __init__(self) -> None:
        self._first = DigestTable()
        self._paths: dict[str, int] = {}

    def find_repeated_id(
        self, identifier: str | None, path: str, number: int, *, within: str = ""
    ) -> str | None:
        """Return the problem of a record's id; None if the id is new or missing. `within`: the scope in which
        ids must differ; empty: everywhere."""
        if identifier is None:
            return None
        place = self._paths.setdefault(path, len(self._paths)) << _NUMBERS | number
        known = self._first.setdefault(hash64(f"{within}\0{identifier}"), place)
        if known is None or known == place:
            return None
        first_path, first = [*self._paths][known >> _NUMBERS], known & ((1 << _NUMBERS) - 1)
        where = f"record {first}" if first_path == path else f"record {first} of {first_path}"
        return f"{quote(identifier)} is also the id of {where}"


_NUMBERS = 40  # bits of a record's number


class RecordLayout(NamedTuple):
    """The layout of one record: the file of its JSON Schema, further checks, and the problem if the file's
    other records have another layout."""

    schema: str = CONVERSATION
    checks: LayoutChecks = LayoutChecks()
    misplaced: str | None = None


class Checker:
    """A checker of a data set's files that also finds repeated ids across them."""

    def __init__(self, layout_of: Callable[[Any], RecordLayout] = lambda _: RecordLayout()) -> None:
        """Set up the checks: `layout_of` returns the layout of a decoded record."""
        self._layout_of = layout_of
        self._ids = SeenIds()

    def check_file(
        self, path: str, records: Iterable[Piece], vocabulary: Vocabulary | None = None
    ) -> FileReport:
        """Return the report on the records of one file, which the report calls `path`."""
        kept = _Kept()
        count = valid = 0
        for number, piece in enumerate(records):
            found = self._check_record(path, number, piece, vocabulary)
            kept.add(found)
            count += 1
            valid += not any(f.severity == "error" for f in found)
        return FileReport(path, count, valid, tuple(kept.findings), {**kept.more} or UNSET)

    def _check_record(
        self, path: str, number: int, piece: Piece, vocabulary: Vocabulary | None
    ) -> list[Finding]:
        try:
            record = decode(piece.raw)
        except ValueError as problem:
            return [Finding.of(number, "$", str(problem), "unreadable")]
        schema, checks, misplaced = self._layout_of(record)
        found = [Finding.of(number, "$", misplaced, "mixed")] if misplaced else []
        found += find_problems(record, number, vocabulary, schema, checks.begins_anew, checks.values_key)
        found += [
            Finding.of(number, path_, problem, "layout") for path_, problem in checks.more_findings(record)
        ]
        identifier = checks.identifier(record)
        if identifier is not None:
            repeated = self._ids.find_repeated_id(identifier, path, number)
        else:
            repeated = self._ids.find_repeated_id(piece.key, path, number, within=path)
        if repeated:
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
