"""A finding in a record, and the table of all kinds of findings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

Severity = Literal["error", "warning"]

# The allowed strings of each key of `background_info`.
Vocabulary = Mapping[str, frozenset[str]]


class Finding(msgspec.Struct, frozen=True, gc=False):
    """A problem of a record, or of the file if `record` is None: records of a file count from 0. `path` is
    the place of the problem, `problem` a clause in plain words, `kind` a key of KINDS."""

    record: int | None
    path: str
    problem: str
    severity: Severity
    kind: str

    @classmethod
    def of(cls, record: int | None, path: str, problem: str, kind: str) -> Finding:
        """Return a finding with the severity of its kind."""
        return cls(record, path, problem, KINDS[kind][0], kind)


# kind -> its severity, and the name of such findings in a summary.
KINDS: dict[str, tuple[Severity, str]] = {
    "unreadable": ("error", "records that cannot be decoded"),
    "schema": ("error", "keys, types or values that the schema forbids"),
    "mixed": ("error", "records of another layout than the others of their file"),
    "layout": ("error", "values that are not what their layout says"),
    "one_speaker": ("error", "conversations in which only one side says anything"),
    "empty_turn": ("error", "turns without any text"),
    "ellipsis_turn": ("error", "turns that hold nothing but dots"),
    "quote_comma": ("error", 'turns with the debris ", at their end'),
    "doubled_quotes": ("error", "turns with doubled quotation marks"),
    "stage_tag": ("error", "turns with a stage tag after the closing quotation mark"),
    "marker_place": ("error", "end markers elsewhere than at the end of the last turn"),
    "ended_by": ("error", "records whose ended_by does not fit their conversation"),
    "id_mismatch": ("error", "ids that contradict the provenance"),
    "duplicate_id": ("error", "ids that occur twice"),
    "vocabulary": ("error", "scenario strings that the preference space does not hold"),
    "manifest": ("error", "files that differ from their manifest"),
    "ledger": ("error", "damage in ledgers"),
    "damaged": ("error", "files of a run that are not as edgen wrote them"),
    "unreadable_file": ("error", "files of a run that cannot be read"),
    "missing": ("warning", "files of a run that were there and are missing"),
    "linked": ("warning", "ledgers with a second name"),
    "no_digest": ("warning", "files of a run without a digest"),
    "no_tally": ("warning", "ledgers without a count of their rows"),
    "stray": ("warning", "files that a manifest does not list, and that were not checked"),
    "stray_quote": ("warning", "turns with quotation marks that belong to no quotation"),
    "alternation": ("warning", "turns by the same role as the one before"),
    "marker_turn": ("warning", "end markers that stand as a turn of their own"),
    "marker_spelling": ("warning", "end markers spelled otherwise than [end of conversation]"),
    "no_marker": ("warning", "conversations without an end marker"),
}


def make_json_path(parts: Iterable[str | int]) -> str:
    """Return a path such as `$.conversation[3].role`; a key that is not a plain word is quoted."""
    path = "$"
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier():
            path += f".{part}"
        else:
            path += f"[{quote(part)}]"
    return path


def quote(value: Any, limit: int = 60) -> str:
    """Return `value` as JSON, shortened to about `limit` characters."""
    if isinstance(value, str) and len(value) > limit:
        return json.dumps(value[:limit], ensure_ascii=False)[:-1] + '…"'
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit + 2 else text[:limit] + "…"
