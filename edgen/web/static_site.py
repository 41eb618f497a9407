"""`edgen web --export`: the reading pages of a run or data set as files, without a server.

Every conversation has a page; lists and one page per facet link to them. Links are relative, so the folder
can be opened from a disk, sent, or published as it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from edgen.core.errors import RunError, UsageError
from edgen.core.text import quantity
from edgen.store.conversation_index import ConversationIndex, Query
from edgen.web.conversation import render_conversation_page
from edgen.web.rendering import make_page_name, read_static_file, render
from edgen.web.sources import IndexedRun, Sources

_HERE = "./"
_LISTED = 100  # conversations per list
_MOST = 100_000  # most conversations of a site
_MARK = ".edgen-site"  # file that marks a site's folder, which a later export may replace


class Site(NamedTuple):
    """A written site: its first page, and the numbers of its conversations and bytes."""

    first: Path
    conversations: int
    size: int


def export_site(paths: Sequence[Path], folder: Path) -> Site:
    """Write the pages of one run or data set to a folder that is new, empty or an earlier site.

    Raises UsageError for another number of runs, too many conversations or any other folder, and RunError if
    something cannot be read or written.
    """
    run = _find_only_run(Sources(paths))
    if folder.exists() and not (folder / _MARK).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--export {folder}: this exists and is not an earlier export; name a new folder.")
    index = run.wait()
    if index is None:
        raise RunError(run.problem or f"{run.path}: it cannot be read.")
    if index.size > _MOST:
        raise UsageError(
            f"{run.path}: it has {index.size:,} conversations, and a site has at most {_MOST:,}; choose "
            "some with `edgen select`."
        )
    part = folder.with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        for name, text in _iterate_pages(run, index):
            (part / name).write_text(text, encoding="utf-8")
        _, style = read_static_file("style.css") or ("", b"")
        (part / "style.css").write_bytes(style)
        (part / _MARK).touch()
        shutil.rmtree(folder, ignore_errors=True)
        part.replace(folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
    except OSError as problem:
        raise RunError(f"{problem.filename or folder}: it cannot be written ({problem.strerror}).") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Site(folder / "index.html", index.size, size)


def _find_only_run(sources: Sources) -> IndexedRun:
    found = [*sources.data, *(run for run, _ in sources.list_runs())]
    if len(found) != 1:
        raise UsageError(
            f"--export: there are {quantity(len(found), 'run')} and data sets here, and a site shows one; "
            "name one run or file."
        )
    return found[0]


def _iterate_pages(run: IndexedRun, index: ConversationIndex) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every page."""
    whole = index.find(Query(), 0, _LISTED)
    facets = [(name, _make_facet_page_name(name)) for name, values in whole.facets.items() if len(values) > 1]
    pages = max(1, -(-index.size // _LISTED))
    for number in range(pages):
        found = whole if number == 0 else index.find(Query(), number, _LISTED)
        text = render(
            "site.html.j2",
            run=run,
            root=_HERE,
            entries=found.entries,
            total=index.size,
            number=number + 1,
            lists=[_list_page(one) for one in range(pages)],
            facets=facets,
        )
        yield _list_page(number), text
    for name, page in facets:
        yield (
            page,
            render(
                "site_facet.html.j2",
                run=run,
                root=_HERE,
                name=name,
                values=_iterate_values(index, name, whole.facets[name]),
            ),
        )
    for identifier in index.iterate_ids():
        yield make_page_name(identifier), render_conversation_page(run, identifier, root=_HERE)


def _iterate_values(
    index: ConversationIndex, name: str, values: Sequence[tuple[str, int]]
) -> Iterator[dict[str, Any]]:
    """Yield the listed values of a facet with their conversations."""
    for value, count in values:
        found = index.find(Query(facets={name: (value,)}), 0, max(count, 1))
        yield {"value": value, "count": count, "entries": found.entries}


def _list_page(number: int) -> str:
    return "index.html" if number == 0 else f"list-{number + 1}.html"


def _make_facet_page_name(name: str) -> str:
    return f"by-{make_page_name(name)}"
