"""Digests: short names made from a thing's whole content. Equal content gives equal names on any machine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.files import open_regular


def sha256(data: str | bytes) -> str:
    """Return 64 hexadecimal digits; for a text, of its UTF-8."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def sha256_of_file(path: Path) -> str:
    """Return `sha256` of a file's bytes. Raises OSError for a link and for anything but a regular file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(facts: Any, digits: int = 16) -> str:
    """Return hexadecimal digits for plain values or structs; independent of the order of keys."""
    return sha256(msgspec.json.encode(facts, order="deterministic"))[:digits]


def hash64(data: str | bytes) -> int:
    """Return an evenly distributed number in [0, 2**64); for a text, of its UTF-8, lone surrogates
    included."""
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
