"""The run's durable record: every raw reply, stored before it is parsed, and every outcome.

A reply is stored under a key made from everything that shaped it. A restart runs the protocols again and
answers them from the ledger, so only unanswered requests are sent. One thread writes, in group commits. Reads
are direct, since WAL allows reading and writing at once.
"""

from __future__ import annotations

from edgen.store.ledger.at_path import count_outstanding_at as count_outstanding_at
from edgen.store.ledger.at_path import read_batches_at as read_batches_at
from edgen.store.ledger.at_path import run_status as run_status
from edgen.store.ledger.at_path import sum_charges_at as sum_charges_at
from edgen.store.ledger.facts import SELECTION as SELECTION
from edgen.store.ledger.facts import Clause as Clause
from edgen.store.ledger.facts import Selection as Selection
from edgen.store.ledger.facts import SplitRule as SplitRule
from edgen.store.ledger.facts import read_selection as read_selection
from edgen.store.ledger.ledger import Ledger as Ledger
from edgen.store.ledger.ledger import Outcome as Outcome
from edgen.store.ledger.outstanding import OutstandingCall as OutstandingCall
from edgen.store.ledger.outstanding import OutstandingCalls as OutstandingCalls
from edgen.store.ledger.reader import LedgerReader as LedgerReader
from edgen.store.ledger.reader import LedgerSummary as LedgerSummary
from edgen.store.ledger.reader import read_summary as read_summary
from edgen.store.ledger.status import OPEN as OPEN
from edgen.store.ledger.status import LedgerCounts as LedgerCounts
from edgen.store.ledger.status import LedgerSession as LedgerSession
from edgen.store.ledger.status import NotedBatch as NotedBatch
from edgen.store.ledger.status import RunPlan as RunPlan
from edgen.store.ledger.status import RunStatus as RunStatus
from edgen.store.ledger.status import Scope as Scope
from edgen.store.ledger.status import TokenCounts as TokenCounts
from edgen.store.ledger.tally import has_tally as has_tally
from edgen.store.ledger.writer import ACKNOWLEDGED as ACKNOWLEDGED
from edgen.store.ledger.writer import describe_lost_replies as describe_lost_replies
from edgen.store.ledger.writer import has_acknowledgement as has_acknowledgement
