"""Pictures of a space's exercises as files, and a page that shows them."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from edgen.domains.tutoring.exercises.drawing import draw_exercise, make_picture_name
from edgen.domains.tutoring.exercises.grammar import Grammar
from edgen.domains.tutoring.exercises.model import Exercise, find_exercises
from edgen.domains.tutoring.exercises.pool import check_exercises, list_example_exercises
from edgen.plugin import Space
from edgen.plugin.errors import UsageError
from edgen.plugin.files import explain_write_errors, new_folder

PAGE = "index.html"
_STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem;background:#e7eaec;color:#22262b}"
    "h1{font-size:1.4rem}main{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:1rem}"
    "figure{margin:0;padding:1rem;background:#fff;border-radius:12px;text-align:center}"
    "img{height:11rem;max-width:100%;object-fit:contain}figcaption{margin-top:.6rem;overflow-wrap:anywhere}b{display:block}"
)


def write_pictures(space: Space, folder: Path, count: int) -> int:
    """Write the pictures of `count` exercises of each tier of a space into a new folder, with a page that
    shows them. Return the number of pictures.

    Raises UsageError if the space has no drawings or the folder is not empty; SpaceError; and RunError or
    StoppedError if writing fails.
    """
    exercises = find_exercises(space)
    if exercises is None or not any(tier.draw for tier in exercises.tiers.values()):
        raise UsageError(
            f"{space.name}: its exercises have no pictures; describe them under `draw:` of a tier of "
            "exercises (docs/spaces.md)."
        )
    grammar = Grammar(space)
    check_exercises(grammar)
    drawn = [
        (one, picture)
        for tier in grammar.tiers
        for one in list_example_exercises(grammar, tier, count)
        if (picture := draw_exercise(one)) is not None
    ]
    with explain_write_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder}: this already exists and is not overwritten; name a new folder.")
        with new_folder(folder) as place:
            for picture_file, picture in {make_picture_name(one): picture for one, picture in drawn}.items():
                (place / picture_file).write_text(picture, encoding="utf-8", newline="")
            page = "".join(_render_page(space.name, [one for one, _ in drawn]))
            (place / PAGE).write_text(page, encoding="utf-8", newline="")
    return len(drawn)


def _render_page(title: str, exercises: list[Exercise]) -> Iterator[str]:
    yield (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src 'self' file:; "
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1><main>\n"
    )
    for one in exercises:
        yield (
            f'<figure><img src="{escape(make_picture_name(one))}" alt="{escape(one.picture or one.question)}">'
            f"<figcaption>{escape(one.question)}<b>{escape(one.answer)}</b></figcaption></figure>\n"
        )
    yield "</main></body></html>\n"
