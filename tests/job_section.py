"""A section of docs/job.md."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class Section(NamedTuple):
    """A struct on the page: its heading, what is said of it, and where in a job its example belongs."""

    struct: type[msgspec.Struct]
    title: str
    about: str
    example: str
    under: tuple[str, ...] = ()
