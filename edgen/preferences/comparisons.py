"""Comparisons of a run by judges: their names, records and templates.

A comparison's task is named after its candidates, as in "r0~r1". Its record holds every verdict.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec

from edgen.core import resources
from edgen.core.digest import compute_sha256
from edgen.core.files import read_regular
from edgen.core.kept_files import require_kept
from edgen.core.pair import Compare, OracleSignal
from edgen.store.run_folder import RunFolder

GUARDED_TEMPLATE = "oracle_guarded"  # the default template
_MOST_NOTED = 1_000_000  # bytes: a template, and its backend's settings
_RESTORE = (
    "It records the judge's template, under which the verdicts are stored. Restore it from a copy; or move it "
    "away, and name the same template: --set prompts.oracle=NAME."
)
_BETWEEN = "~"  # occurs in no candidate's name


def name_comparison(a: str, b: str) -> str:
    """Return the task that compares two candidates, given their names."""
    return f"{a}{_BETWEEN}{b}"


def read_comparison(task: str) -> tuple[str, str]:
    """Return the names of the candidates that a task compares."""
    a, _, b = task.partition(_BETWEEN)
    return a, b


class JudgedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison in a judge's ledger. `texts` is a digest of the compared texts. If they have changed
    since, the signal does not count."""

    signal: OracleSignal
    texts: str


decode_judged = msgspec.json.Decoder(JudgedComparison).decode


def find_published_template(rundir: RunFolder, compare: Compare) -> str | None:
    """Return the name of the published template if this run was judged with it, for this kind of comparison,
    and never with the guarded template.

    Runs judged with this earlier default keep it, so their pairs are not judged again.
    """
    name = f"oracle_{compare}"
    known = {_find_digest(shipped): shipped for shipped in (name, GUARDED_TEMPLATE)}
    used = {known.get(template) for template in _list_noted_templates(rundir, compare)}
    return name if name in used and GUARDED_TEMPLATE not in used else None


def read_judge_notes(rundir: RunFolder) -> dict[str, dict[str, Any]]:
    """Return the notes on each judge by its id: asker, backend, template. Judges without readable notes are
    missing."""
    found = {}
    for ledger in rundir.judge_ledgers():
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            noted = read_regular(ledger.with_suffix(".json"), _MOST_NOTED)
            found[ledger.stem] = msgspec.json.decode(noted, type=dict[str, Any])
    return found


def _find_digest(shipped: str) -> str:
    return compute_sha256(resources.find("prompts", shipped).read_bytes())


def _list_noted_templates(rundir: RunFolder, compare: Compare) -> Iterator[str]:
    """Yield the sha256 of the template of each judge with this kind of comparison in this run."""
    for ledger in rundir.judge_ledgers():
        require_kept(ledger.with_suffix(".json"), _RESTORE)
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            noted = msgspec.json.decode(read_regular(ledger.with_suffix(".json"), _MOST_NOTED))
            if noted["compare"] == compare:
                yield str(noted["template"]["sha256"])
