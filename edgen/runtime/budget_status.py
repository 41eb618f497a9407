"""Status of the budget that a run shares with others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core.errors import EdgenError, FileError
from edgen.core.text import round_usd
from edgen.core.yaml_values import read_text, read_yaml

if TYPE_CHECKING:
    from edgen.store.budget_book import CapUse

_PICO = 10**12  # picodollars in a US dollar


class CapStatus(msgspec.Struct, frozen=True):
    """One cap of a shared budget."""

    cap: str  # name of the cap
    period: str  # the day or month that the cap counts now
    unit: Literal["usd", "tokens"]  # unit of the amounts
    used: float  # including the part that runs reserve at present
    left: float  # rest of the cap
    most: float  # amount of the cap

    @classmethod
    def of(cls, stand: CapUse) -> CapStatus:
        """Return the status of a cap, with rounded dollars."""
        if not stand.money:
            return cls(stand.cap, stand.period, "tokens", stand.used, stand.left, stand.most)
        amounts = (round_usd(value / _PICO) or 0.0 for value in (stand.used, stand.left, stand.most))
        return cls(stand.cap, stand.period, "usd", *amounts)


class BudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of the budget that a run shares with others; `problem`: why it is unknown."""

    file: str
    caps: tuple[CapStatus, ...] = ()
    problem: str | UnsetType = UNSET


def read_budget_status(job: Path) -> BudgetStatus | None:
    """Return the present status of the budget that the job of a run names; None without a budget or a
    readable job."""
    try:
        values = read_yaml(read_text(job, FileError), str(job), FileError)
    except EdgenError:
        return None  # the rest of the status needs no job
    limits = values.get("limits") if isinstance(values, dict) else None
    file = limits.get("budget") if isinstance(limits, dict) else None
    if not isinstance(file, str):
        return None
    from edgen.store.budget_book import BudgetBook  # imports everything that reads jobs

    try:
        stands = BudgetBook(Path(file), create=False).list_current_use()
    except EdgenError as problem:
        return BudgetStatus(file=file, problem=str(problem))
    return BudgetStatus(file=file, caps=tuple(map(CapStatus.of, stands)))
