"""The signatures of Python functions that take declared options. `make docs` writes this file, from the
functions and from the structs of their options; nothing calls these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from edgen.execution.progress import Listener


def score(
    truth: Path | str,
    predictions: Path | str,
    candidates: int = 100,
    examples: Path | str | None = None,
) -> None:
    """Take the arguments of `score`."""


def baseline(
    examples: Path | str,
    output: Path | str,
    by: str = "bm25",
    seed: int = 0,
    *,
    backend: str | None = None,
    prompt: str | Path | None = None,
    none: bool = False,
    via: Literal["online", "batch"] = "online",
    progress: bool | None = None,
    on_event: Listener | None = None,
    trust_hosts: str | Iterable[str] = (),
    backends: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    batch: Mapping[str, Any] | None = None,
    asks: int | None = None,
    forms: Literal["auto", "schema", "prose"] | None = None,
    **overrides: Any,
) -> None:
    """Take the arguments of `baseline`."""
