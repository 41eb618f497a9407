"""A data set in the reading pages: found by a word, and read."""

from __future__ import annotations

from pathlib import Path

from edgen.store.conversation_index import Query
from edgen.web.conversation import render_conversation_page
from edgen.web.sources import Sources


def open_in_pages(path: Path, word: str, said: str) -> dict[str, object]:
    """Find the conversations of a data set by a word, read three, and return the facets."""
    (data,) = Sources([path]).data
    index = data.wait()
    assert index is not None, data.problem
    found = index.find(Query(words=word), 0, 9)
    assert found.total > 0
    assert found.facets
    for one in found.entries[:3]:
        page = render_conversation_page(data, one.id)
        assert '<li class="turn' in page
        assert said.lower() in page.lower()
    return {**found.facets}
