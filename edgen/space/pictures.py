"""Pictures of a space: image files in its folder that its entries and sections name, and the sections'
drawings.

An entry's field `picture` with the name of an image file is that picture. Templates get its mark
(`edgen.core.pictures`), and content digests include its digest. A run keeps the pictures of its space in
base64, in one JSON file.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import Problem, SpaceError, UsageError
from edgen.core.files import read_regular
from edgen.core.pictures import MOST_BYTES, PromptPicture, read_picture
from edgen.core.text import compile_later
from edgen.core.yaml_values import read_text, shorten_word
from edgen.space.model import PICTURE, Dimension, Entry, Space, iterate_sections

MOST_TOTAL = 6_000_000  # total bytes of a space's pictures
_MOST_SHOWN = 20  # problems reported
_FILE = compile_later(r"(?i)[^\0-\x1f]{1,250}\.(?:png|jpe?g|gif|webp)")


def names_picture(value: Any) -> bool:
    """Return whether a field's value is the name of an image file."""
    return isinstance(value, str) and _FILE.fullmatch(value) is not None


def name_kept_file(space: str) -> str:
    """Return the name of the file with a run's copy of pictures. `space`: the name of the space's file."""
    return f"{Path(space).stem}.pictures.json"


def format_kept_text(pictures: Mapping[str, PromptPicture]) -> str:
    """Return the text of the file with a run's copy of pictures."""
    return msgspec.json.format(
        msgspec.json.encode({name: one.base64 for name, one in pictures.items()})
    ).decode()


def with_pictures(space: Space, path: Path, problems: list[Problem]) -> Space:
    """Return the space with the pictures of its file at `path`. Problems are added with their paths."""
    found = _load(_find_pictures(space.dimensions), path, problems)
    if found:
        marked = _rename_pictures(space.dimensions, {name: one.mark for name, one in found.items()})
        space = msgspec.structs.replace(space, dimensions=marked, pictures=found)
    named = [one for section, _ in iterate_sections(space) for one in section.pictures(space)]
    if named:
        found = {**found, **_load(named, path, problems)}
        space = msgspec.structs.replace(space, pictures=found)
    if drawn := [one for section, _ in iterate_sections(space) for one in section.drawings(space)]:
        found = {**found, **_draw(drawn, path, space.name, problems)}
        space = msgspec.structs.replace(space, pictures=found)
    if sum(len(one.data) for one in found.values()) > MOST_TOTAL:
        problems.append(
            Problem("$", f"its pictures have more than {MOST_TOTAL:,} bytes together; make them smaller")
        )
    return space


def with_names(space: Space) -> tuple[Dimension, ...]:
    """Return the dimensions with the file names of pictures in place of their marks."""
    return _rename_pictures(space.dimensions, {one.mark: name for name, one in space.pictures.items()})


def _find_pictures(dimensions: Iterable[Dimension]) -> Iterator[tuple[str, str]]:
    """Yield (path of the field, file name) for each entry that names a picture."""
    for one in dimensions:
        for number, entry in enumerate(one.entries):
            if names_picture(name := entry.fields.get(PICTURE)):
                yield f"$.dimensions.{one.name}[{number}].{PICTURE}", str(name)


def _load(names: Iterable[tuple[str, str]], space: Path, problems: list[Problem]) -> dict[str, PromptPicture]:
    """Return the pictures in the files `names` (path in the space, file name)."""
    wanted: dict[str, str] = {}
    for path, name in names:
        wanted.setdefault(name, path)
    found: dict[str, PromptPicture] = {}
    kept = _read_kept(space.parent / name_kept_file(space.name)) if wanted else {}
    for name, path in wanted.items():
        try:
            found[name] = read_picture(kept[name] if name in kept else _read_file(name, space))
        except (OSError, ValueError) as problem:
            said = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
            problems.append(Problem(path, f"the picture {shorten_word(name)} cannot be used: {said}"))
        if len(problems) >= _MOST_SHOWN:
            break
    return found


def _draw(
    drawn: Iterable[tuple[str, str, str]], space: Path, name: str, problems: list[Problem]
) -> dict[str, PromptPicture]:
    """Return the pictures that a section draws. A run keeps them, so that another version of the drawing
    library does not change its requests."""
    kept = _read_kept(space.parent / name_kept_file(name))
    found: dict[str, PromptPicture] = {}
    for path, file, svg in drawn:
        try:
            found[file] = read_picture(kept[file] if file in kept else draw_png(svg))
        except (UsageError, ValueError) as problem:
            problems.append(Problem(path, f"it cannot be drawn as a picture for models: {problem}"))
            break
    return found


def draw_png(svg: str) -> bytes:
    """Return an SVG picture as PNG.

    Raises UsageError without the extra `pictures`, and ValueError for an invalid picture or one with texts:
    fonts differ from machine to machine.
    """
    if "<text" in svg:
        raise ValueError("it has words (a card or a label), and fonts differ from machine to machine")
    from edgen.core.extras import require_extra

    require_extra("pictures", "Drawings that are sent to models")
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True))


def _read_file(name: str, space: Path) -> bytes:
    """Return the bytes of a file below the space's folder."""
    folder = os.path.realpath(space.parent)
    path = os.path.realpath(space.parent / name)
    if os.path.commonpath([folder, path]) != folder:
        raise ValueError("it leads out of the space's folder")
    return read_regular(Path(path), MOST_BYTES)


def _read_kept(path: Path) -> dict[str, bytes]:
    """Return the pictures in a run's copy, next to its space."""
    if not path.exists():
        return {}
    try:
        texts = msgspec.json.decode(read_text(path, SpaceError), type=dict[str, str])
        return {name: base64.b64decode(text, validate=True) for name, text in texts.items()}
    except (msgspec.MsgspecError, binascii.Error, RecursionError):
        raise SpaceError(str(path), "it does not hold pictures by name in base64.") from None


def _rename_pictures(dimensions: Iterable[Dimension], texts: Mapping[str, str]) -> tuple[Dimension, ...]:
    """Return the dimensions with other texts in their `picture` fields: `texts` by present text."""
    return tuple(
        msgspec.structs.replace(one, entries=tuple(_with(entry, texts) for entry in one.entries))
        if PICTURE in one.fields
        else one
        for one in dimensions
    )


def _with(entry: Entry, texts: Mapping[str, str]) -> Entry:
    said = entry.fields.get(PICTURE)
    if not isinstance(said, str) or said not in texts:
        return entry
    return msgspec.structs.replace(entry, fields={**entry.fields, PICTURE: texts[said]})
