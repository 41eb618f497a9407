"""Conversations as tables of other libraries, which are imported only here."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from edgen.core.errors import UsageError
from edgen.core.extras import install_command


def import_extra(module: str, extra: str, what: str) -> Any:
    """A library that an extra brings. Raises UsageError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UsageError(
            f"{what} needs {module}, which is not installed; install it with `{install_command(extra)}`."
        ) from None


def fill_columns(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each with the columns of all, in the order in which these first came."""
    kept = [*rows]
    columns = dict.fromkeys(column for row in kept for column in row)
    return [{column: row.get(column) for column in columns} for row in kept]


def make_pandas(rows: Iterable[dict[str, Any]]) -> Any:
    """A pandas.DataFrame."""
    pandas = import_extra("pandas", "pandas", "to_pandas()")
    return pandas.DataFrame(fill_columns(rows))


def make_polars(rows: Iterable[dict[str, Any]]) -> Any:
    """A polars.DataFrame."""
    polars = import_extra("polars", "polars", "to_polars()")
    return polars.DataFrame(fill_columns(rows), infer_schema_length=None)


def make_dataset(rows: Iterable[dict[str, Any]]) -> Any:
    """A datasets.Dataset, of Hugging Face."""
    datasets = import_extra("datasets", "datasets", "to_dataset()")
    return datasets.Dataset.from_list(fill_columns(rows))
