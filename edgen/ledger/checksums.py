"""Checksums of what is stored, so that a flipped bit is noticed where a row is read.

CRC-32 finds every single flipped bit and every short burst; it is no seal against somebody who means to deceive. An
outcome's fingerprint is left out: merging writes another one, and with a wrong one an outcome counts for nothing.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

_encode = msgspec.msgpack.Encoder().encode


def of_reply(
    unit: int,
    step: int,
    attempt: int,
    key: bytes,
    finish_reason: str,
    refusal: str | None,
    model: str | None,
    simulated: int,
    prompt_tokens: int | None,
    completion_tokens: int | None,
    text: str,
) -> int:
    return crc32(
        _encode(
            (unit, step, attempt, key, finish_reason, refusal, model, simulated, prompt_tokens, completion_tokens, text)
        )
    )  # fmt: skip


def of_outcome(
    unit: int, status: str, reason: str | None, detail: str | None, group: int, reply_key: bytes | None
) -> int:
    return crc32(_encode((unit, status, reason, detail, group, reply_key)))


def of_record(unit: int, data: bytes) -> int:
    return crc32(data, unit & 0xFFFFFFFF)
