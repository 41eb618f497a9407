"""Python functions whose signature is generated, and the file of signatures; see tests/signatures.py."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec


class Signed(NamedTuple):
    """A function with declared options."""

    name: str
    file: str  # in the folder of the signatures
    kinds: tuple[type[msgspec.Struct], ...]  # structs that declare its options
    without: tuple[str, ...] = ()  # fields with another form in Python, or without one
    free: str | None = "overrides"  # its keyword arguments of any name; None: without such arguments


class SignedPage(NamedTuple):
    """A file of signatures: its path, its imports for annotations, and its functions."""

    path: Path
    imports: str
    functions: tuple[Signed, ...]
