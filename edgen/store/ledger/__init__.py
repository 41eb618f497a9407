"""The run's durable record: every raw reply, stored before it is parsed, and every outcome.

A reply is stored under a key made from everything that shaped it. A restart runs the protocols again and
answers them from the ledger, so only unanswered requests are sent. One thread writes, in group commits. Reads
are direct, since WAL allows reading and writing at once.
"""

from __future__ import annotations

from edgen.store.ledger.at_path import (
    count_outstanding_at,
    read_batches_at,
    read_latest_reply,
    run_status,
    sum_charges_at,
)
from edgen.store.ledger.facts import SELECTION, Clause, Selection, SplitRule, read_selection
from edgen.store.ledger.ledger import Ledger, Outcome
from edgen.store.ledger.outstanding import OutstandingCall, OutstandingCalls
from edgen.store.ledger.reader import LedgerReader, LedgerSummary, Outcomes, read_summary
from edgen.store.ledger.status import (
    OPEN,
    LedgerCounts,
    LedgerSession,
    NotedBatch,
    RunPlan,
    RunStatus,
    Scope,
    TokenCounts,
)
from edgen.store.ledger.tally import has_tally
from edgen.store.ledger.writer import ACKNOWLEDGED, describe_lost_replies, has_acknowledgement

__all__ = [
    "ACKNOWLEDGED",
    "OPEN",
    "SELECTION",
    "Clause",
    "Ledger",
    "LedgerCounts",
    "LedgerReader",
    "LedgerSession",
    "LedgerSummary",
    "NotedBatch",
    "Outcome",
    "Outcomes",
    "OutstandingCall",
    "OutstandingCalls",
    "RunPlan",
    "RunStatus",
    "Scope",
    "Selection",
    "SplitRule",
    "TokenCounts",
    "count_outstanding_at",
    "describe_lost_replies",
    "has_acknowledgement",
    "has_tally",
    "read_batches_at",
    "read_latest_reply",
    "read_selection",
    "read_summary",
    "run_status",
    "sum_charges_at",
]  # fmt: skip
