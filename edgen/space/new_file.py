"""The file of a space counted from a user's files: its text, and its place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from edgen.core.errors import DataError, SpaceError, UsageError
from edgen.core.files import write_new, write_whole
from edgen.core.text import is_forbidden
from edgen.core.yaml_values import MAX_BYTES
from edgen.space import Space, dump_space, parse_space

MAX_DATA_BYTES = 256 * 1024 * 1024  # of a file that is counted; the largest of ED's release is a tenth of it
MAX_PROBLEMS = 20  # a file


def clean(text: str) -> str:
    """`text` stripped, each control character, surrogate or bidirectional override made a blank."""
    if not text.isprintable():
        text = "".join(" " if is_forbidden(char) else char for char in text)
    return text.strip()


def choose_name(name: str | None, output: Path | None, otherwise: str) -> str:
    """Return the space's name: the given one, else after the new file, else `otherwise`. Raises UsageError
    for a blank one."""
    if not (chosen := clean(name if name is not None else output.stem if output else otherwise)):
        raise UsageError("--name: a space needs a name that is not blank.")
    return chosen


class NewSpace(NamedTuple):
    """The text of a space file, of how many records it was made, the values of each dimension, and
    remarks."""

    text: str
    records: int
    values: dict[str, int]
    notes: tuple[str, ...] = ()


def dump(space: Space, source: str, too_large: str) -> str:
    """Return the space as a file's text. Raises DataError if edgen could not read it back; `too_large` is the
    advice."""
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
    """Write `text` to a new file, or with `force` to any. Raises UsageError if that cannot be done."""
    try:
        if not force:
            write_new(path, text)
        elif path.exists() and not path.is_file():
            raise UsageError(f"-o {path}: this is not a file, and it is not replaced; choose another name.")
        else:
            write_whole(Path(os.path.realpath(path)), text)  # what a link of the person's own leads to
    except FileExistsError:
        raise UsageError(
            f"-o {path}: this already exists; choose another name, or pass --yes to overwrite it."
        ) from None
    except FileNotFoundError:
        raise UsageError(f"-o {path}: there is no folder {path.parent}; make it first.") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(f"-o {path}: it cannot be written: {reason}.") from None
