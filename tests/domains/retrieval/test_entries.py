"""Files of entries, read line by line if they have an object a line."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.errors import DataError
from edgen.domains.retrieval.submissions.entries import Entries
from edgen.domains.retrieval.submissions.pools import Pools
from edgen.validation.reading import cut

VALUES = st.lists(
    st.dictionaries(st.text(max_size=4), st.one_of(st.text(max_size=6), st.integers()), max_size=3),
    min_size=1,
    max_size=5,
)
WAYS = {
    "lines": lambda values: "".join(json.dumps(one) + "\n" for one in values),
    "as edgen writes it": lambda values: "[\n" + ",\n".join(map(json.dumps, values)) + "\n]\n",
    "commas first": lambda values: "[" + "\n, ".join(map(json.dumps, values)) + "]",
    "blank lines": lambda values: "\ufeff\n[\n\n" + ",\n\n".join(map(json.dumps, values)) + "\n\n]",
    "one line": json.dumps,
    "indented": lambda values: json.dumps(values, indent=1),
}


@settings(max_examples=30, deadline=None)
@given(VALUES, st.sampled_from(sorted(WAYS)))
def test_entries_are_what_was_written_however_it_was(
    tmp_path_factory: pytest.TempPathFactory, values: list[dict[str, Any]], way: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "entries.json"
    path.write_text(WAYS[way](values), encoding="utf-8")
    entries = Entries(path)
    assert entries.are_json
    for _ in range(2):  # entries can be iterated again
        assert [json.loads(bytes(raw)) for raw in entries] == values


@pytest.mark.parametrize(
    "text",
    [
        '[\n{"a": 1}\n{"a": 2}\n]',
        '[\n{"a": 1},\n]',
        '[\n{"a": 1},\n{"a": 2}',
        '[\n{"a": 1}]\n{"a": 2}',
        '[\n{"a": 1},\n,{"a": 2}]',
        '{"a": 1}\n{"a": }\n',
        "[\n",
        "",
    ],
)
def test_what_is_no_list_is_refused_as_it_is_of_records(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as expected:
        cut(text.encode(), str(path))
    with pytest.raises(DataError) as found:
        list(Entries(path))
    assert str(found.value) == str(expected.value)


def test_what_json_does_not_know_and_python_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[\n{"a": 1},\n{"a": NaN},\n{"a": "\\ud800"}\n]', encoding="utf-8")
    assert len(list(Entries(path))) == 3


def test_a_pipe_is_read_once_and_kept(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=('[{"a": 1},\n{"a": 2}]',))
    writer.start()
    entries = Entries(pipe)
    writer.join()
    assert len(list(entries)) == len(list(entries)) == 2


def test_a_pool_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pool.tsv"
    for text, said in (("AAA\tyes\nno tab\n", "line 2: expected 'candidate-id"), ("\n", "no candidates")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=said):
            Pools(path)
