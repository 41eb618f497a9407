"""What a service says it counted, believed only where it can be true: one reading for every adapter.

`counted` gives a Usage, or None where the service did not count. A count that is missing, negative, no whole
number, or beyond what any model takes is none. A prompt has tokens, and so has a text that is not empty: a 0 for
either is no count. What is not counted is charged at the most it can have been, see `ModelClient`.
"""

from __future__ import annotations

from typing import TypeGuard

from edgen.core.values import Usage

# Tokens. The largest contexts that are offered take ten million; no model writes a million in one answer, thoughts
# included, and those with the longest are offered with a few hundred thousand.
MOST_PROMPT = 10_000_000
MOST_COMPLETION = 1_000_000


def read_usage(
    prompt: object, completion: object, text: str, cache_read: object = None, cache_write: object = None
) -> Usage | None:
    """The usage of a reply with this text, None where the service's numbers are no count of it. What of the prompt's was
    read from a cache or written to it counts where it can be a part of it; else the whole was neither."""
    prompt, completion = _whole(prompt, MOST_PROMPT), _whole(completion, MOST_COMPLETION)
    if prompt is None or completion is None or prompt == 0 or (completion == 0 and text):
        return None
    read, write = _whole(cache_read or 0, prompt), _whole(cache_write or 0, prompt)
    if read is None or write is None or read + write > prompt:
        read = write = 0
    return Usage(prompt, completion, read, write)


def read_member(value: object, name: str) -> object:
    """What an object says under a name, None where it is no object or says nothing."""
    return value.get(name) if isinstance(value, dict) else None


def add_counts(*counts: object, most: int = MOST_COMPLETION) -> int | None:
    """The sum of counts, of which a service leaves out what is 0; None where one is no count of at most `most`."""
    total = 0
    for count in counts:
        if (whole := _whole(0 if count is None else count, most)) is None:
            return None
        total += whole
    return total


def _whole(value: object, most: int) -> int | None:
    """`value` as a count of tokens; some servers write numbers as text or with a decimal point."""
    if type(value) is not int:
        if not _reads_whole(value):
            return None
        value = int(value)
    return value if 0 <= value <= most else None


def _reads_whole(value: object) -> TypeGuard[str | float]:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, str) and len(value) <= 12 and value.isascii() and value.isdecimal()
