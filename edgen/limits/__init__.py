"""How fast and how far a run may go: admission to a backend, rates, and the budget.

One Admission stands before each backend; one Budget before the whole run. Both know nothing of what
a call is. Neither reads a clock but the running event loop's.
"""

from __future__ import annotations

from edgen.limits.admission import Admission, AdmissionClosed, Ticket
from edgen.limits.budget import Budget, BudgetExhausted, Reservation, Spent
from edgen.limits.tokens import (
    prompt_token_bound,
    prompt_token_estimate,
    prompt_token_floor,
    text_token_bound,
    text_token_floor,
)
from edgen.limits.window import Verdict

__all__ = [
    "Admission",
    "AdmissionClosed",
    "Budget",
    "BudgetExhausted",
    "Reservation",
    "Spent",
    "Ticket",
    "Verdict",
    "prompt_token_bound",
    "prompt_token_estimate",
    "prompt_token_floor",
    "text_token_bound",
    "text_token_floor",
]
