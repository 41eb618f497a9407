"""Check of a whole ledger: SQLite checks pages and indexes, edgen checks the checksum of every row."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from edgen.core.errors import DamagedError, EdgenError
from edgen.store.ledger.checked_reader import (
    COSTS,
    REPLIES,
    CheckedReader,
    CostRow,
    Natural,
    ReplyRow,
    open_to_read,
    take_fitting,
)
from edgen.store.ledger.facts import find_damaged_facts
from edgen.store.ledger.opening import check
from edgen.store.ledger.problems import make_outcome_error
from edgen.store.ledger.reply_details import find_unsound_details
from edgen.store.ledger.status import read_status
from edgen.store.ledger.tally import find_changed_tables
from edgen.store.ledger.writer import COUNT, describe_lost_replies, read_acknowledged

_MOST = 5  # damaged rows that are listed, for each kind


def find_ledger_damage(path: Path) -> Iterator[str]:
    """Yield a sentence for each damage in a ledger, without changing it. Memory: one row."""
    acknowledged = read_acknowledged(path)  # first, since a writer may continue meanwhile
    if not path.exists():
        if acknowledged:
            yield describe_lost_replies(path, acknowledged)
        return
    try:
        with open_to_read(path) as reader:
            check(reader.connection, path)
            if (lost := acknowledged - reader.require_row(COUNT, tuple[Natural])[0]) > 0:
                yield describe_lost_replies(path, lost)
            yield from map(str, find_damaged_facts(reader))
            read_status(reader)
            yield from _limit_problems(_find_unsound_replies(reader))
            yield from _limit_problems(_find_unsound_costs(reader))
            yield from _limit_problems(
                str(make_outcome_error(path, scenario, task)) for scenario, task in reader.find_unsound()
            )
            yield from _limit_problems(_find_unsound_details(reader))
            yield from find_changed_tables(reader)
    except EdgenError as problem:
        yield str(problem)


def _find_unsound_replies(reader: CheckedReader) -> Iterator[str]:
    with reader.explain_errors(), reader.read_text_leniently():
        for values in reader.connection.execute(REPLIES):
            row = take_fitting(values, ReplyRow)
            if row is None:
                yield (
                    f"{reader.path}: a stored answer (scenario {values[0]}, task {values[1]}) has "
                    "impossible values."
                )
                continue
            try:
                reader.check_reply(row)
            except DamagedError as problem:
                yield str(problem)


def _find_unsound_costs(reader: CheckedReader) -> Iterator[str]:
    with reader.explain_errors():
        for values in reader.connection.execute(COSTS):
            row = take_fitting(values, CostRow)
            if row is None or not row.is_sound:
                yield (
                    f"{reader.path}: the time or cost of a stored answer (scenario {values[0]}, task "
                    f"{values[1]}) is damaged; "
                    "totals and budgets of this run are not reliable. The answer itself is sound or named "
                    "above."
                )


def _find_unsound_details(reader: CheckedReader) -> Iterator[str]:
    for scenario, task in find_unsound_details(reader):
        yield (
            f"{reader.path}: the log probabilities or times of a stored answer (scenario {scenario}, task "
            f"{task}) are damaged, so it counts as one without. The answer itself is sound or named above."
        )


def _limit_problems(problems: Iterator[str]) -> Iterator[str]:
    """Yield the first problems, and the number of further ones."""
    yield from itertools.islice(problems, _MOST)
    if more := sum(1 for _ in problems):
        yield f"{more:,} more rows of this kind are damaged."
