"""Warnings of libraries, from logging and from `warnings`."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from accelerate.logging import MultiProcessAdapter

# Warnings of the libraries about each other, and about no row.
INNOCENT = ("gradient_checkpointing",)


class _Collector(logging.Handler):
    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.said = said

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(f"{record.name}: {record.getMessage()}")


@contextmanager
def complaints() -> Iterator[list[str]]:
    """Yield every warning and error of the block, from logging and from `warnings`."""
    said: list[str] = []
    handler = _Collector(said)
    # Some libraries detach their loggers from the root's handlers, so these get the handler themselves.
    loggers = [logging.getLogger()] + [
        logger
        for logger in map(logging.getLogger, list(logging.Logger.manager.loggerDict))
        if not logger.propagate
    ]
    MultiProcessAdapter.warning_once.cache_clear()  # warnings of an earlier test are repeated
    for logger in loggers:
        logger.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
            said += [f"{one.category.__name__}: {one.message}" for one in caught]
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        said[:] = [line for line in said if not any(words in line for words in INNOCENT)]
