"""Forms of damage: each takes the content of a file and returns another one, or None for a removed file."""

from __future__ import annotations

import random
from collections.abc import Callable

Damage = Callable[[bytes, random.Random], bytes | None]
_PAGE = 4096  # bytes of a page of SQLite


def flip(data: bytes, chance: random.Random) -> bytes:
    """Flip one bit."""
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]


def cut(data: bytes, chance: random.Random) -> bytes:
    """Cut the end off."""
    return data[: chance.randrange(1, len(data))] if len(data) > 1 else b""


def cut_lines(data: bytes, chance: random.Random) -> bytes:
    """Cut the last lines off, whole."""
    lines = data.splitlines(keepends=True)
    return b"".join(lines[: chance.randrange(1, len(lines))]) if len(lines) > 1 else b""


def drop(data: bytes, chance: random.Random) -> bytes:
    """Remove one line."""
    lines = data.splitlines(keepends=True)
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def swap(data: bytes, chance: random.Random) -> bytes:
    """Swap two lines."""
    return b"".join(_swapped(data.splitlines(keepends=True), chance))


def repeat(data: bytes, chance: random.Random) -> bytes:
    """Repeat one line."""
    lines = data.splitlines(keepends=True)
    place = chance.randrange(len(lines))
    return b"".join([*lines[: place + 1], lines[place], *lines[place + 1 :]])


def empty(data: bytes, chance: random.Random) -> bytes:  # noqa: ARG001 - as the others
    """Remove the content."""
    return b""


def remove(data: bytes, chance: random.Random) -> None:
    """Remove the file."""


def drop_page(data: bytes, chance: random.Random) -> bytes:
    """Remove one page."""
    pages = _pages(data)
    del pages[chance.randrange(len(pages))]
    return b"".join(pages)


def clear_page(data: bytes, chance: random.Random) -> bytes:
    """Fill one page with zeros."""
    pages = _pages(data)
    place = chance.randrange(len(pages))
    pages[place] = bytes(len(pages[place]))
    return b"".join(pages)


def swap_pages(data: bytes, chance: random.Random) -> bytes:
    """Swap two pages."""
    return b"".join(_swapped(_pages(data), chance))


def _pages(data: bytes) -> list[bytes]:
    return [data[start : start + _PAGE] for start in range(0, len(data), _PAGE)]


def _swapped(parts: list[bytes], chance: random.Random) -> list[bytes]:
    if len(parts) > 1:
        one, other = chance.sample(range(len(parts)), 2)
        parts[one], parts[other] = parts[other], parts[one]
    return parts


OF_TEXT: tuple[Damage, ...] = (cut, cut_lines, drop, swap, repeat, empty, remove)
OF_LEDGER: tuple[Damage, ...] = (cut, drop_page, clear_page, swap_pages, empty, remove)


def choose_damage(name: str, number: int) -> Damage:
    """Return the form of a file's damage `number`: every other one flips a bit, those between take turns."""
    forms = OF_LEDGER if ".db" in name and not name.endswith("-acked") else OF_TEXT
    return flip if number % 2 == 0 else forms[number // 2 % len(forms)]
