"""Readers of data sets are found by their entry points; an unknown layout is a one-sentence error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgen.api.validating import validate
from edgen.core import registry
from edgen.core.errors import DataError
from edgen.core.registry import part_of
from edgen.core.values import Scenario, Turn
from edgen.evaluation.data_sets import open_data_sets
from edgen.families import reader
from edgen.families.parts import FiledRecord, make_verbatim_record
from edgen.families.reader import (
    DataSetReader,
    ReportWords,
    find_reader_of_record,
    list_known_titles,
    list_own_readers,
)
from edgen.families.record_files import open_records
from edgen.validation.layout import LayoutChecks


class Letters(ReportWords, DataSetReader):
    """A layout of letters in folders of their own."""

    name = "letters"
    title = "Letters"
    schema = "dialogue"
    unit = "letter"

    def recognizes(self, record: Any) -> bool:
        """Return whether the record is a letter."""
        return isinstance(record, dict) and "letter" in record

    def read_file(self, record: Any) -> FiledRecord:
        """Return the letter as a turn."""
        if not isinstance(record["letter"], str):
            raise ValueError("a letter without a text")
        return make_verbatim_record(None, Scenario(-1, {}), (Turn("Writer", record["letter"]),))


@pytest.fixture
def _letters() -> Iterator[None]:
    with registry.register_temporarily("reader", "letters", Letters()):
        reader.list_other_readers.cache_clear()
        yield
    reader.list_other_readers.cache_clear()


@pytest.mark.usefixtures("_letters")
def test_a_layout_is_one_class(tmp_path: Path) -> None:
    path = tmp_path / "letters.json"
    path.write_text(json.dumps({"1": {"letter": "Dear all"}, "2": {"letter": 5}}))
    (data,) = open_data_sets([path])
    assert [(sample.id, sample.turns[0].text) for sample in data.samples()] == [("1", "Dear all")]
    assert data.unread == {"a letter without a text": 1}
    assert "Letters" in list_known_titles()


def test_without_its_entry_point_it_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "letters.json"
    path.write_text(json.dumps([{"letter": "Dear all"}] * 3_619))
    assert find_reader_of_record({"letter": "Dear all"}) is None
    for read in (lambda: open_data_sets([path]), lambda: validate([path])):
        with pytest.raises(DataError) as caught:
            read()
        said = str(caught.value)
        assert len(said.splitlines()) == 1
        assert all(title in said for title in list_known_titles())


def test_each_layout_has_a_title_and_none_recognises_what_is_nothing() -> None:
    for one in list_own_readers():
        assert one.title.strip()
        assert part_of(one, ReportWords).unit.strip()
        for nothing in (None, 3, "x", [], {}, {"a": 1}, [{}], {"utterances": 3}, {"messages-so-far": None}):
            assert not one.recognizes(nothing), (one.name, nothing)
            assert part_of(one, LayoutChecks).identifier(nothing) is None


def test_the_first_record_that_is_recognised_decides(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps([5, {"what": 1}, {"scenario": {}, "conversation": []}]))
    found = open_records(path).reader
    assert found is not None
    assert found.name == "dialogue"
    path.write_text("[]")
    assert open_records(path).is_empty
    assert open_records(path).reader is None
