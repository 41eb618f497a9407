"""Annotators of a layer: their valid names, and the record of their answers."""

from __future__ import annotations

import msgspec

from edgen.core.text import compile_later
from edgen.protocols.labelled_units import LabelledUnit

_NAME = compile_later(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")


class StoredLabels(msgspec.Struct, frozen=True, kw_only=True):
    """The labels of a task in an annotator's ledger."""

    units: tuple[LabelledUnit, ...]
    simulated: bool = False


def is_name(name: str) -> bool:
    """Return whether a name is valid for an annotator or a layer."""
    return _NAME.fullmatch(name) is not None
