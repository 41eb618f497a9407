"""The knowledge file of a space: JSON beside it, with facts about what its values name, as a catalogue of courses.

No scenario is drawn from it and no role is shown it: a space's values say themselves what a role is to know. Runs keep a copy, and
formats whose consumers look facts up (DSTC7's sub-task 5) write it beside their data.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.digest import sha256
from edgen.core.errors import SpaceError
from edgen.core.yaml_values import read_text

MAX_BYTES = 8 * 1024 * 1024
FILE_NAME = r"^(?!.*\.schema\.json$)[A-Za-z0-9][A-Za-z0-9_.-]{0,95}\.json$"


class Knowledge(msgspec.Struct, frozen=True, dict=True):
    """A knowledge file: its name, and its text to the letter, which is empty where the space was read without its folder."""

    file: str
    text: str = ""

    @functools.cached_property
    def sha256(self) -> str:
        """The digest of the text, in hex."""
        return sha256(self.text.encode())

    @property
    def value(self) -> Any:
        """What it holds: a list, or a mapping."""
        return msgspec.json.decode(self.text)


def is_file_name(name: str) -> bool:
    """Whether a knowledge file can be called so: it is no path."""
    return re.fullmatch(FILE_NAME, name) is not None


def read_knowledge(name: str, space: Path) -> Knowledge:
    """The file of that name beside the space's own. Raises SpaceError for one that is too large or no JSON object or list, and
    for a link that leads out of the folder: the file goes into runs, and out with what is exported."""
    path = space.parent / name
    real = Path(os.path.realpath(path))
    if real.parent not in (Path(os.path.realpath(space.parent)), Path(os.path.realpath(space)).parent):
        raise SpaceError(
            str(path), f"this leads to {real}; a space's knowledge file lies beside the space's."
        )
    text = read_text(path, SpaceError, max_bytes=MAX_BYTES)
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        raise SpaceError(str(path), "it is nested too deeply to be read.") from None
    except (msgspec.DecodeError, UnicodeError) as problem:
        raise SpaceError(str(path), f"it is no JSON: {problem}. Was it cut off?") from None
    if not isinstance(value, (dict, list)) or not value:
        raise SpaceError(str(path), "expected a JSON object or a list with something in it.")
    return Knowledge(name, text)
