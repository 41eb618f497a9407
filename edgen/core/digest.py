"""Digests: short names made from a thing's whole content. Equal content gives equal names on any machine."""

from __future__ import annotations

import hashlib
import re
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


_SEAL = re.compile(rb',\n  "sha256": "([^"\n]*)"\n}\s*\Z')


def seal(document: bytes) -> bytes:
    """Return a JSON object, indented by two blanks, whose last key is the digest of what stands before it."""
    body = document.rstrip().removesuffix(b"}").rstrip()
    return body + f',\n  "sha256": "{sha256(body)}"\n}}'.encode()


def is_sealed_as_written(document: bytes) -> bool | None:
    """Return whether a document that `seal` returned is unchanged; None for one without a digest."""
    found = _SEAL.search(document)
    return None if found is None else sha256(document[: found.start()]).encode() == found[1]


def fingerprint(facts: Any, digits: int = 16) -> str:
    """Return hexadecimal digits for plain values or structs; independent of the order of keys."""
    return sha256(msgspec.json.encode(facts, order="deterministic"))[:digits]


def hash64(data: str | bytes) -> int:
    """Return an evenly distributed number in [0, 2**64); for a text, of its UTF-8, lone surrogates
    included."""
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
