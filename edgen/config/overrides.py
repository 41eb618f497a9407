"""Overrides of a job's keys: `--set key.path=value`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from edgen.core.errors import FileError, UsageError
from edgen.core.yaml_values import read_yaml


class _SetError(FileError):
    what = "option"


def apply_override(value: dict[str, Any], assignment: str) -> None:
    """Apply one `a.b=c` to the plain values, the right side read as YAML."""
    key, equals, text = assignment.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(re.fullmatch(r"[A-Za-z0-9_-]+", part) for part in parts):
        raise UsageError(f"--set {assignment}: expected key=value, as in --set limits.in_flight=8.")
    node = value
    for part in parts[:-1]:
        child = node.setdefault(part, {})
        if not isinstance(child, dict):
            raise UsageError(f"--set {assignment}: '{part}' is not a mapping in this job.")
        node = child
    node[parts[-1]] = read_yaml(text, f"--set {assignment}", _SetError)


def texts_of(overrides: Iterable[str]) -> frozenset[str]:
    """Return every text in the values of `key.path=value` overrides, which a person typed."""
    found, left = set(), [read_yaml(one.partition("=")[2], f"--set {one}", _SetError) for one in overrides]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return frozenset(found)
