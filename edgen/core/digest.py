"""Digests: short names for things, made of all that they consist of. Equal things, equal names, on any machine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.files import open_regular


def sha256(data: str | bytes) -> str:
    """64 hexadecimal digits; of a text, over its UTF-8."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def sha256_of_file(path: Path) -> str:
    """As `sha256`, of a file's bytes. Raises OSError for a link and for what is no regular file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(facts: Any, digits: int = 16) -> str:
    """Hexadecimal digits for plain values or structs; the order of keys does not count."""
    return sha256(msgspec.json.encode(facts, order="deterministic"))[:digits]


def hash64(data: str | bytes) -> int:
    """A number in [0, 2**64), evenly spread; of a text, in which half characters may stand, over its UTF-8."""
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
