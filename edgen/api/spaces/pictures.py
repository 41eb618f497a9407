"""Pictures of a space's exercises as files, and a page that shows them."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from edgen.api.spaces.facts import example_exercises
from edgen.core.errors import UsageError
from edgen.core.files import explain_write_errors, write_new
from edgen.planning.allowed_files import unlimited
from edgen.space import load_space
from edgen.space.exercises.check import check_exercises
from edgen.space.exercises.drawing import draw_exercise, picture_name
from edgen.space.exercises.grammar import Grammar
from edgen.space.exercises.model import Exercise

PAGE = "index.html"
_STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem;background:#e7eaec;color:#22262b}"
    "h1{font-size:1.4rem}main{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:1rem}"
    "figure{margin:0;padding:1rem;background:#fff;border-radius:12px;text-align:center}"
    "img{height:11rem;max-width:100%;object-fit:contain}figcaption{margin-top:.6rem;overflow-wrap:anywhere}b{display:block}"
)


def write_pictures(name: str, folder: Path, count: int) -> int:
    """Write the pictures of `count` exercises of each tier of a space into a new folder, with a page that shows them;
    returns how many there are.

    Raises UsageError where the space draws none, or the folder holds something; SpaceError; RunError, StoppedError where it
    cannot be written.
    """
    space = load_space(unlimited().require("preference_space", name, "space"))
    if space.exercises is None or not any(tier.draw for tier in space.exercises.tiers.values()):
        raise UsageError(
            f"{space.name}: it draws no pictures; write what is in them under `draw:` of a tier of its exercises "
            "(docs/spaces.md)."
        )
    grammar = Grammar(space)
    check_exercises(grammar)
    drawn = [
        (one, picture)
        for tier in grammar.tiers
        for one in example_exercises(grammar, tier, count)
        if (picture := draw_exercise(one)) is not None
    ]
    with explain_write_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder}: something is there, and nothing is overwritten; name a new folder.")
        folder.mkdir(parents=True, exist_ok=True)
        for picture_file, picture in {picture_name(one): picture for one, picture in drawn}.items():
            write_new(folder / picture_file, picture)
        write_new(folder / PAGE, "".join(_page(space.name, [one for one, _ in drawn])))
    return len(drawn)


def _page(title: str, exercises: list[Exercise]) -> Iterator[str]:
    yield (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src 'self' file:; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1><main>\n"
    )
    for one in exercises:
        yield (
            f'<figure><img src="{escape(picture_name(one))}" alt="{escape(one.picture or one.question)}">'
            f"<figcaption>{escape(one.question)}<b>{escape(one.answer)}</b></figcaption></figure>\n"
        )
    yield "</main></body></html>\n"
