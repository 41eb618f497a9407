"""A new space file, counted from a user's files: its text and its location."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from edgen.core.errors import DataError, SpaceError, UsageError
from edgen.core.files import write_new, write_whole
from edgen.core.text import is_forbidden
from edgen.core.yaml_values import MAX_BYTES
from edgen.space import Space, dump_space, parse_space

MAX_DATA_BYTES = 256 * 1024 * 1024  # bytes of a counted file; Education Dialogue's largest has a tenth
MAX_PROBLEMS = 20  # a file


def clean(text: str) -> str:
    """Return `text`, stripped, with a blank in place of each control character, surrogate or bidirectional
    override."""
    if not text.isprintable():
        text = "".join(" " if is_forbidden(char) else char for char in text)
    return text.strip()


def choose_name(name: str | None, output: Path | None, default: str) -> str:
    """Return the space's name: the given one, else the new file's, else `default`. Raises UsageError for a
    blank name."""
    if not (chosen := clean(name if name is not None else output.stem if output else default)):
        raise UsageError("--name: a space needs a name that is not blank.")
    return chosen


class NewSpace(NamedTuple):
    """The text of a new space file, the number of counted records, the values of each dimension, and
    remarks."""

    text: str
    records: int
    values: dict[str, int]
    notes: tuple[str, ...] = ()


def dump(space: Space, source: str, too_large: str) -> str:
    """Return the text of a space's file. Raises DataError if edgen could not read it back; `too_large` is the
    advice in that case."""
    text = dump_space(space)
    if len(text.encode()) > MAX_BYTES:
        size = f"{MAX_BYTES // 1024 // 1024} MiB"
        raise DataError(source, f"the space file would be larger than {size}, the most that {too_large}.")
    try:
        parse_space(text, source)
    except SpaceError as error:
        raise DataError(source, "edgen cannot read the new space back:", error.problems) from None
    return text


def write(path: Path, text: str, *, force: bool) -> None:
    """Write `text` to a new file; with `force`, also to an existing one. Raises UsageError if that is
    impossible."""
    try:
        if not force:
            write_new(path, text)
        elif path.exists() and not path.is_file():
            raise UsageError(f"-o {path}: this is not a file, and it is not replaced; choose another name.")
        else:
            write_whole(Path(os.path.realpath(path)), text)  # a link is the user's own: write to its target
    except FileExistsError:
        raise UsageError(
            f"-o {path}: this already exists; choose another name, or pass --yes to overwrite it."
        ) from None
    except FileNotFoundError:
        raise UsageError(f"-o {path}: there is no folder {path.parent}; make it first.") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(f"-o {path}: it cannot be written: {reason}.") from None
