"""Data sets of every layout that are cut off, contain a bad record, repeat ids, mix layouts, or are large.

The error is a sentence with the place, and memory does not grow with the file.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from edgen.api.validating import validate
from edgen.core.errors import DataError
from edgen.evaluation.data_sets import open_data_sets
from edgen.families.reader import list_own_readers
from edgen.families.record_files import iterate_rows

Record = dict[str, Any]


def _education(number: int) -> Record:
    background = dict.fromkeys(
        ("topic", "student_prefrences", "teacher_prefrences", "student_reactions", "teacher_reactions"), "x"
    )
    said = [("Teacher", f"Shall we begin with part {number}?"), ("Student", "Yes. [end of conversation]")]
    return {
        "background_info": background,
        "conversation": [{"role": role, "text": text} for role, text in said],
    }


def _dialogue(number: int) -> Record:
    said = [
        {"role": "Tutor", "text": f"What is {number} and 1?"},
        {"role": "Learner", "text": "I do not know."},
    ]
    return {
        "id": f"d{number}",
        "scenario": {"topic": "sums"},
        "roles": ["Tutor", "Learner"],
        "conversation": said,
    }


def _chat(number: int) -> Record:
    said = [{"role": "user", "content": f"What is {number}?"}, {"role": "assistant", "content": "A number."}]
    return {"id": f"c{number}", "messages": said}


def _msdialog(number: int) -> Record:
    utterances = [
        {
            "affiliation": "Common User", "utterance_time": "2017-01-01T10:00:00", "utterance_pos": place, "id": place,
            "user_id": f"User{place}", "actor_type": actor, "utterance": text, "is_answer": 0, "vote": 0,
        }
        for place, (actor, text) in enumerate([("User", f"Lamp {number} flickers."), ("Agent", "Turn it off.")], 1)
    ]  # fmt: skip
    about = {
        "category": "Lamps",
        "dialog_time": "2017-01-01T10:00:00",
        "title": "It flickers",
        "frequency": "2",
    }
    return {**about, "utterances": utterances}


def _dstc7(number: int) -> Record:
    right = {"candidate-id": "CD34", "utterance": "Turn it off first."}
    said = [
        ("participant_1", f"Disk {number} is full."),
        ("participant_2", "Which?"),
        ("participant_1", "Both."),
    ]
    return {
        "data-split": "train", "example-id": number, "scenario": 1,
        "messages-so-far": [{"speaker": speaker, "utterance": text} for speaker, text in said],
        "options-for-next": [{"candidate-id": "AB12", "utterance": "No."}, right], "options-for-correct-answers": [right],
    }  # fmt: skip


def _cima(number: int) -> Record:
    return {
        "past_convo": ["Let's begin.", f"Is it number {number}?"], "img": "'a.png'", "prep": "e sotto", "engPrep": "is under the",
        "obj": "la borsa", "engObj": "bag", "color": "blu", "engColor": "blue", "grammarRules": "[]",
        "studentActions": ["True", "False", "False", "False"], "tutorResponses": ["Nearly."],
        "tutorActions": [[False, True, False, False, False]], "tutorKeys": [],
    }  # fmt: skip


class Layout(NamedTuple):
    """A layout: its reader, its record of a number, and the form of its files."""

    reader: str
    record: Callable[[int], Record]
    by_id: bool = False
    within: str = ""
    has_ids: bool = True

    def lines(self, numbers: range | list[int]) -> list[str]:
        """Return the records as JSON, one a line."""
        texts = [json.dumps(self.record(number)) for number in numbers]
        return (
            [f'"{number}": {text}' for number, text in zip(numbers, texts, strict=True)]
            if self.by_id
            else texts
        )

    def file(self, lines: list[str]) -> str:
        """Return the content of a file with these lines."""
        opening, closing = ("{", "}") if self.by_id else ("[", "]")
        if self.within:
            opening, closing = f'{{"{self.within}": {{', "}}"
        return opening + "\n" + ",\n".join(lines) + "\n" + closing + "\n"


LAYOUTS = [
    layout
    for layout in (
        Layout("education", _education, has_ids=False),
        Layout("dialogue", _dialogue),
        Layout("chat", _chat),
        Layout("msdialog", _msdialog, by_id=True),
        Layout("dstc7", _dstc7),
        Layout("cima", _cima, by_id=True, within="prepDataset", has_ids=False),
    )
    if layout.reader in {reader.name for reader in list_own_readers()}
]
COUNT = 60
each_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.reader)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path) -> tuple[int, dict[str, int]]:
    """Return how many conversations `compare` and `stats` read, and the number of other records by reason."""
    (data,) = open_data_sets([path])
    return sum(1 for _ in data.samples()), dict(data.unread)


@each_layout
def test_a_whole_file_is_valid(layout: Layout, tmp_path: Path) -> None:
    path = write(tmp_path / "data.json", layout.file(layout.lines(range(1, COUNT))))
    assert validate([path]).sound
    assert read(path) == (COUNT - 1, {})


@each_layout
@pytest.mark.parametrize("share", [0.2, 0.5, 0.93])
def test_a_file_that_is_cut_off_is_refused_with_its_line(
    layout: Layout, share: float, tmp_path: Path
) -> None:
    text = layout.file(layout.lines(range(1, COUNT)))
    path = write(tmp_path / "data.json", text[: int(share * len(text))])
    for use in (lambda: validate([path]), lambda: read(path)):
        with pytest.raises(
            DataError, match=r"data\.json: it is not valid JSON: line \d+ ends in the middle"
        ) as told:
            use()
        assert f"at byte {len(path.read_text('utf-8').rstrip(chr(10)).encode())}." in str(told.value)


@each_layout
@pytest.mark.parametrize("bad", ['{"x": 3}', "[]", "7", "null"])
def test_a_bad_record_is_named_by_validate_and_counted_by_compare(
    layout: Layout, bad: str, tmp_path: Path
) -> None:
    lines = layout.lines(range(1, COUNT))
    lines[COUNT // 2] = f'"bad": {bad}' if layout.by_id else bad
    path = write(tmp_path / "data.json", layout.file(lines))
    report = validate([path])
    assert not report.sound
    found, unread = read(path)
    assert (found, sum(unread.values())) == (COUNT - 2, 1)


@pytest.mark.parametrize("layout", [one for one in LAYOUTS if one.has_ids], ids=lambda layout: layout.reader)
def test_repeated_ids_are_reported(layout: Layout, tmp_path: Path) -> None:
    lines = layout.lines(range(1, COUNT))
    path = write(tmp_path / "data.json", layout.file([*lines, lines[7]]))
    (file,) = validate([path]).files
    assert file.counts["duplicate_id"] == 1


@each_layout
def test_repeated_ids_are_remarked_on_by_what_measures(layout: Layout, tmp_path: Path) -> None:
    def told(*texts: str) -> str | None:
        folder = tmp_path / f"{len(texts)}{len(texts[0])}"
        folder.mkdir()
        for number, text in enumerate(texts):
            write(folder / f"{number}.json", text)
        (data,) = open_data_sets([folder])
        assert sum(1 for _ in data.samples()) >= COUNT - 1
        return data.describe_repeats()

    lines = layout.lines(range(1, COUNT))
    assert told(layout.file(lines)) is None
    said = told(layout.file([*lines, lines[7]]))
    if not layout.has_ids and not layout.by_id:
        assert said is None
        return
    assert said is not None
    assert said.startswith(
        "1 record has the id of an earlier record, and it is still counted; the first is record 59"
    )
    twice = told(layout.file(lines), layout.file(lines[3:9]))
    # Names of records must be unique within a file only.
    assert (twice is None) is layout.by_id
    assert twice is None or "6 records have" in twice


@each_layout
def test_a_second_layout_is_refused_with_its_place(layout: Layout, tmp_path: Path) -> None:
    other = next(one for one in LAYOUTS if one.reader != layout.reader)._replace(by_id=layout.by_id)
    lines = [*layout.lines(range(1, 30)), *other.lines(range(30, 40))]
    path = write(tmp_path / "data.json", layout.file(lines))
    with pytest.raises(DataError, match=r"record 29 has the layout of .* separate files"):
        read(path)
    assert not validate([path]).sound


def test_a_parquet_file_is_read_a_group_of_rows_at_a_time(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    said = [
        {"role": "user", "content": "What is it? " * 200},
        {"role": "assistant", "content": "A number. " * 200},
    ]
    rows = pa.Table.from_pylist([{"id": f"c{number}", "messages": said} for number in range(500)])
    with parquet.ParquetWriter(path, rows.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(10):
            writer.write_table(rows)
    size, before = path.stat().st_size, pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - before for _ in iterate_rows(path, "data"))
    assert most < size / 3


@pytest.mark.only_long
@pytest.mark.integration
@each_layout
def test_memory_does_not_grow_with_the_file(layout: Layout, tmp_path: Path) -> None:
    def peak(use: Callable[[Path], object], count: int) -> int:
        path = write(tmp_path / "data.json", layout.file(layout.lines(range(1, count))))
        tracemalloc.start()
        use(path)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    for use in (lambda path: validate([path]), read):
        use(write(tmp_path / "data.json", layout.file(layout.lines(range(1, 9)))))  # data loaded once
        assert peak(use, 4_000) < peak(use, 500) + 2_000_000
