"""Read batch result files into the ledger: store each line's reply, remove its outstanding request.

Reading a file is idempotent. Lines larger than any answer are not held in memory. Lines about requests that
are not outstanding are counted, never stored.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from edgen.config import Price
from edgen.core.errors import CallError
from edgen.core.plugins.faults import blame, require_type
from edgen.core.registry import find_plugin
from edgen.core.values import MAX_ANSWER, Reply
from edgen.execution.client.backend_calls import check_failure, check_reply
from edgen.execution.client.charges import MAYBE_CHARGED, apply_token_floor, compute_cost
from edgen.providers.batches import LineResult, NeverBegun, ReadLine, read_custom_id
from edgen.store.ledger import Ledger, OutstandingCall, TokenCounts

_BREATH = 200  # lines read before other tasks get their turn
_PIECE = 1 << 16  # bytes per read while skipping
_GROUP = 256  # maximum replies queued for the disk


class ResultCounts(TokenCounts):
    """Counts of one result file."""

    answered: int = 0  # lines stored as new answers
    failed: Counter[str] = msgspec.field(default_factory=Counter)  # lines with an error, by kind
    unanswered: int = 0  # requests that the provider never worked on
    known: int = 0  # lines about requests answered earlier
    strangers: int = 0  # lines about requests unknown to this run
    stranger: str = ""  # first id unknown to this run; empty without one
    unreadable: int = 0  # lines that cannot be read
    tokens: int = 0  # charged tokens
    usd: float = 0.0  # US dollars charged

    @property
    def lines(self) -> int:
        answers = self.answered + self.failed.total() + self.known
        return answers + self.unanswered + self.strangers + self.unreadable


def check_lines(provider: str, read: ReadLine) -> ReadLine:
    """Return a reader of result lines that checks the results of a plugin's service. It raises
    FaultyPluginError if a result is invalid or cannot be stored."""
    if find_plugin("provider", provider) is None:
        return read

    def read_checked(line: bytes) -> LineResult | NeverBegun | None:
        try:
            said = read(line)
        except BaseException as error:  # noqa: BLE001 - raised again
            blame("provider", provider, error, "for a line of a file of results")
        if said is None or isinstance(said, NeverBegun):
            return said
        require_type("provider", provider, said, LineResult, "a LineResult")
        if said.reply is not None:
            return msgspec.structs.replace(said, reply=check_reply(provider, said.reply))
        failure = require_type("provider", provider, said.failure, CallError, "a CallError as `failure`")
        check_failure(provider, failure)
        return said

    return read_checked


async def read_results(
    path: Path,
    read: ReadLine,
    ledger: Ledger,
    price: Callable[[OutstandingCall], Price | None],
    sent_at: float | None = None,
) -> ResultCounts:
    """Read one file into the ledger. `price`: returns a request's price. `sent_at`: when the batch was sent,
    in seconds since the epoch. Raises OSError if the file cannot be read."""
    reading = ResultCounts()
    storing: list[Awaitable[None]] = []
    taken: set[int] = set()  # ids read here; their removal may not be on disk yet
    with path.open("rb") as file:
        for count, line in enumerate(_iterate_lines(file)):
            if count % _BREATH == 0:
                await asyncio.sleep(0)
            said = read(line) if line else None
            if said is None:
                reading.unreadable += 1
                continue
            row = _find_row(said.id, ledger, taken, reading)
            if row is None:
                continue
            taken.add(row.id)
            if isinstance(said, NeverBegun):
                reading.unanswered += 1
                ledger.out.note_return(row, None)
            elif said.reply is None:
                failure = said.failure
                assert failure is not None, "a line holds a reply or a failure"
                reading.failed[str(failure.kind)] += 1
                lost = failure.kind in MAYBE_CHARGED
                ledger.out.note_return(row, failure, lost=lost)
                if lost:
                    reading.tokens += row.tokens
                    reading.usd += row.usd
            else:
                storing.append(_store(ledger, row, said.reply, price(row), sent_at, reading))
            if len(storing) >= _GROUP:
                await asyncio.gather(*storing)
                storing.clear()
        await asyncio.gather(*storing)
    await ledger.flush()
    return reading


def _iterate_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the non-empty lines; yield b"" for a line that is too long for an answer."""
    while line := file.readline(MAX_ANSWER):
        if len(line) == MAX_ANSWER and not line.endswith(b"\n"):
            while len(rest := file.readline(_PIECE)) == _PIECE and not rest.endswith(b"\n"):
                pass
            yield b""
        elif line.strip():
            yield line


def _find_row(name: str, ledger: Ledger, taken: set[int], reading: ResultCounts) -> OutstandingCall | None:
    """Return the outstanding request of a line; without one, count the line and return None."""
    if (place := read_custom_id(name)) is not None:
        rows = ledger.out.find(*place)
        if rows and rows[0].id not in taken:
            return rows[0]
        if rows or ledger.out.is_back(*place):
            reading.known += 1
            return None
    reading.strangers += 1
    reading.stranger = reading.stranger or name
    return None


def _store(
    ledger: Ledger,
    row: OutstandingCall,
    reply: Reply,
    price: Price | None,
    sent_at: float | None,
    reading: ResultCounts,
) -> Awaitable[None]:
    usage = reply.usage
    # If the service gives no counts, charge the maximum.
    tokens, usd = row.tokens, row.usd
    if usage is not None:
        paid = apply_token_floor(usage, reply)
        tokens, usd = paid.prompt_tokens + paid.completion_tokens, compute_cost(price, paid, batch=True)
        reading.add(usage)
    reading.answered += 1
    reading.tokens += tokens
    reading.usd += usd
    answer = (row.address, row.key, reply, tokens, None if price is None else usd)
    latency = 0.0 if sent_at is None else max(0.0, time.time() - sent_at)
    return ledger.store([answer], latency, 1, held=row.id)
