"""YAML texts that are parsed once in a process: most tests read the same few jobs and spaces.

Each reader gets values of its own, so that changes do not spread. Invalid texts are parsed each time.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

from edgen.core import yaml_values

KEPT = 200  # texts


def parse_once(replace: Callable[[object, str, object], None] = setattr) -> None:
    """Let edgen's readers of YAML find the values of texts that were parsed before. `replace` sets an
    attribute of a module."""
    parse = yaml_values.read_values

    @functools.lru_cache(KEPT)
    def parse_and_pickle(text: str) -> bytes:
        return pickle.dumps(parse(text), pickle.HIGHEST_PROTOCOL)

    def read(text: str) -> Any:
        return pickle.loads(parse_and_pickle(text))

    replace(yaml_values, "read_values", read)
