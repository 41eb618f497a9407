"""Budgets over time: a small YAML file that any number of runs name as `limits.budget`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edgen.core.errors import FileError, Problem
from edgen.core.yaml_values import convert, read_text, read_yaml

_Dollars = Annotated[float, Meta(gt=0, le=1_000_000)]
_Tokens = Annotated[int, Meta(ge=1, le=10**15)]


class BudgetFileError(FileError):
    """An unusable budget file."""

    what = "budget"


class BudgetFile(msgspec.Struct, frozen=True, kw_only=True):
    """The budget shared by all runs that name the file."""

    per_day: _Dollars | None = None
    """US dollars a day; null: no cap."""
    per_month: _Dollars | None = None
    """US dollars a calendar month; null: no cap."""
    tokens_per_day: _Tokens | None = None
    """Tokens a day, of prompts and answers; null: no cap."""
    tokens_per_month: _Tokens | None = None
    """Tokens a calendar month; null: no cap."""
    total: _Dollars | None = None
    """US dollars ever; null: no cap."""
    tokens_total: _Tokens | None = None
    """Tokens ever; null: no cap."""
    timezone: Literal["local", "utc"] = "local"
    """The start of a day: midnight in the machine's time zone, or in UTC."""

    @property
    def counts_money(self) -> bool:
        """True if US dollars are capped, so that every backend needs a price."""
        return any(cap is not None for cap in (self.per_day, self.per_month, self.total))


def read_budget_file(path: Path) -> BudgetFile:
    """Return the budget of a file. Raises BudgetFileError."""
    source = str(path)
    value = read_yaml(read_text(path, BudgetFileError, max_bytes=65_536), source, BudgetFileError)
    problems: list[Problem] = []
    if not isinstance(value, dict):
        raise BudgetFileError(source, "a budget is a mapping, as in {per_day: 5.00, per_month: 80.00}.")
    budget = convert(value, BudgetFile, "$", problems)
    if problems:
        raise BudgetFileError.of(source, problems)
    assert isinstance(budget, BudgetFile)
    if not any((budget.counts_money, budget.tokens_per_day, budget.tokens_per_month, budget.tokens_total)):
        raise BudgetFileError(source, "it caps nothing: give per_day, per_month or tokens_per_day.")
    if os.stat(path).st_nlink > 1:  # noqa: PTH116 - follows links, since the file itself is checked
        raise BudgetFileError(
            source,
            "the file has a second name (a hard link), and each would count separately; use a symbolic link.",
        )
    return budget
