"""Token counts as reported by services, with checks, shared by all adapters.

`read_usage` returns a Usage, or None if the service gave no valid count. Missing, negative, fractional and
implausibly large counts are invalid. A prompt has tokens, and so has a non-empty text, so a 0 for either is
invalid. Uncounted tokens are charged at their possible maximum, see `ModelClient`.
"""

from __future__ import annotations

from typing import TypeGuard

from edgen.core.values import Usage

# Tokens. The largest context windows hold ten million; no model writes a million in one answer, thoughts
# included.
MOST_PROMPT = 10_000_000
MOST_COMPLETION = 1_000_000


def read_usage(
    prompt: object, completion: object, text: str, cache_read: object = None, cache_write: object = None
) -> Usage | None:
    """Return the usage of a reply with this text; None if the service's counts are invalid. Cached prompt
    tokens count only if they can be a part of the prompt."""
    prompt, completion = (
        _read_token_count(prompt, MOST_PROMPT),
        _read_token_count(completion, MOST_COMPLETION),
    )
    if prompt is None or completion is None or prompt == 0 or (completion == 0 and text):
        return None
    read, write = _read_token_count(cache_read or 0, prompt), _read_token_count(cache_write or 0, prompt)
    if read is None or write is None or read + write > prompt:
        read = write = 0
    return Usage(prompt, completion, read, write)


def read_member(value: object, name: str) -> object:
    """Return an object's member; None if it is missing or `value` is not an object."""
    return value.get(name) if isinstance(value, dict) else None


def add_counts(*counts: object, most: int = MOST_COMPLETION) -> int | None:
    """Add counts, some of which a service may omit if zero; None if one is not a count of at most `most`."""
    total = 0
    for count in counts:
        if (whole := _read_token_count(0 if count is None else count, most)) is None:
            return None
        total += whole
    return total


def _read_token_count(value: object, most: int) -> int | None:
    """Read `value` as a count of tokens. Some servers write numbers as text or with a decimal point."""
    if type(value) is not int:
        if not _reads_whole(value):
            return None
        value = int(value)
    return value if 0 <= value <= most else None


def _reads_whole(value: object) -> TypeGuard[str | float]:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, str) and len(value) <= 12 and value.isascii() and value.isdecimal()
