"""Checksums of what is stored, so that a flipped bit is noticed where a row is read.

CRC-32 finds every single flipped bit and every short burst; it is no seal against somebody who means to deceive. An
outcome's fingerprint is left out: merging writes another one, and with a wrong one an outcome counts for nothing.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec

_encode = msgspec.msgpack.Encoder().encode


def of_row(*values: Any) -> int:
    """The checksum of a reply or an outcome: of its columns, in the order in which they are read."""
    return crc32(_encode(values))


def of_record(scenario: int, task: int | str, data: bytes) -> int:
    return crc32(data, crc32(_encode((scenario, task))))
