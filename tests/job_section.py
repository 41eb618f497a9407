"""A section of docs/job.md."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class Section(NamedTuple):
    """A struct on the page.

    Its heading, its text, an example with all its keys, whether the page shows the example, and another page
    of docs/ that has the keys in place of this one.
    """

    struct: type[msgspec.Struct]
    title: str
    about: str
    example: str
    shown: bool = False
    elsewhere: str = ""
