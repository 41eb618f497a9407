"""The knowledge file of a space: JSON next to it, with facts about its values, such as a catalogue of
courses.

Scenarios are not drawn from it and no role sees it: a space's values state what a role knows. Runs keep a
copy. Formats whose users look up facts write it next to their data.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.digest import compute_sha256
from edgen.core.errors import Problem, SpaceError
from edgen.core.yaml_values import read_text

MAX_BYTES = 8 * 1024 * 1024
FILE_NAME = r"^(?!.*\.schema\.json$)[A-Za-z0-9][A-Za-z0-9_.-]{0,95}\.json$"


class Knowledge(msgspec.Struct, frozen=True, dict=True):
    """A knowledge file: its name, and its exact text, which is empty if the space was read without its
    folder."""

    file: str
    text: str = ""

    @functools.cached_property
    def sha256(self) -> str:
        """The digest of the text, in hex."""
        return compute_sha256(self.text.encode())

    @property
    def value(self) -> Any:
        """The contents: a list, or a mapping."""
        return msgspec.json.decode(self.text)


def find_knowledge(name: Any, space: Path | None, problems: list[Problem]) -> Knowledge | None:
    """Return the knowledge file that a space names. Without the space's path, its text is not read. Problems
    are added to `problems`."""
    if not isinstance(name, str) or not re.fullmatch(FILE_NAME, name):
        message = "expected the name of a file next to this one that ends in .json, as in course-info.json"
        problems.append(Problem("$.knowledge", message))
        return None
    return Knowledge(name) if space is None else read_knowledge(name, space)


def read_knowledge(name: str, space: Path) -> Knowledge:
    """Read the file of that name next to the space.

    Raises SpaceError for a file that is too large or not a JSON object or list. Raises it also for a link out
    of the folder, since runs and exports copy the file.
    """
    path = space.parent / name
    real = Path(os.path.realpath(path))
    if real.parent not in (Path(os.path.realpath(space.parent)), Path(os.path.realpath(space)).parent):
        raise SpaceError(
            str(path), f"this leads to {real}; a space's knowledge file lies next to the space's."
        )
    text = read_text(path, SpaceError, max_bytes=MAX_BYTES)
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        raise SpaceError(str(path), "it is nested too deeply to be read.") from None
    except (msgspec.DecodeError, UnicodeError) as problem:
        raise SpaceError(str(path), f"it is not JSON: {problem}. Was it cut off?") from None
    if not isinstance(value, (dict, list)) or not value:
        raise SpaceError(str(path), "expected a JSON object or a list with something in it.")
    return Knowledge(name, text)
