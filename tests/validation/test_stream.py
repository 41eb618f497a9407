"""Records cut from files as a stream: the same for every size of the window, with the place of an error."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.errors import DataError
from edgen.validation import stream
from edgen.validation.reading import read_records
from edgen.validation.stream import iterate_lines, iterate_pieces
from tests.dose import dose

texts = st.text(alphabet='ab"\\ é\U0001f642\n{}[]:,', max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
records = st.fixed_dictionaries({"said": st.lists(texts, max_size=3), "more": values})


def is_record(value: Any) -> bool:
    return isinstance(value, dict) and "said" in value


def cut(data: bytes, size: int) -> Any:
    """Return the pieces of a file through a window of that size: records, keys and lines, or the error."""
    before = stream._CHUNK
    stream._CHUNK = size
    try:
        return [
            (json.loads(bytes(one.raw)), one.key, one.line)
            for one in iterate_pieces(io.BytesIO(data), "x", is_record)
        ]
    except DataError as problem:
        return str(problem)
    finally:
        stream._CHUNK = before


@given(
    st.lists(records, min_size=1, max_size=5),
    st.sampled_from(["list", "lines", "by id", "nested"]),
    st.sampled_from([None, 1]),
    st.integers(1, 40),
)
@settings(max_examples=dose(15, 150))
def test_any_window_finds_the_same_records(
    listed: list[Any], form: str, indent: int | None, size: int
) -> None:
    by_id = {str(place): one for place, one in enumerate(listed)}
    data: Any = {"list": listed, "by id": by_id, "nested": {"none": {}, "first": by_id, "second": by_id}}
    text = "\n".join(map(json.dumps, listed)) if form == "lines" else json.dumps(data[form], indent=indent)
    found = cut(text.encode(), size)
    assert found == cut(text.encode(), 1 << 20)
    twice = 2 if form == "nested" else 1
    assert [one for one, _, _ in found] == listed * twice
    keys = {"by id": [*by_id], "nested": [f"{part}/{key}" for part in ("first", "second") for key in by_id]}
    assert [key for _, key, _ in found] == keys.get(form, [None] * len(listed))


@given(
    st.lists(records, min_size=1, max_size=4), st.sampled_from(["list", "lines", "by id"]), st.data(),
    st.integers(1, 30),
)  # fmt: skip
@settings(max_examples=dose(15, 150))
def test_a_file_that_is_cut_off_or_damaged_is_a_sentence(
    listed: list[Any], form: str, data: st.DataObject, size: int
) -> None:
    whole = json.dumps({str(n): one for n, one in enumerate(listed)} if form == "by id" else listed)
    text = "\n".join(map(json.dumps, listed)) if form == "lines" else whole
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(
        st.sampled_from(["", '"', "}", ",", "x", "\ud800".encode("utf-16", "replace").decode("latin-1")])
    )
    damaged = (text[:at] + put + (text[at:] if put else "")).encode()
    found = cut(damaged, size)
    assert found == cut(damaged, 1 << 20)
    if isinstance(found, str):
        assert "\n" not in found
        assert any(word in found for word in ("line ", "empty", "holds no records"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'[{"said": []}, {"said": tru', "line 1 ends in the middle of a value, at byte 27."),
        (b'[{"said": []},\n {"said": "\\u12', "line 2 ends in the middle of a value, at byte 30."),
        (b'{"a": {"said": []},\n "b"\n\n', "line 2 ends in the middle of a value, at byte 24."),
        (b'{"a": "\xc3\xa9"}\n{"a": \n{"a": 1}\n', "line 2 ends in the middle of a value, at byte 18."),
        (b'{"a": {"said": []},\n b: {}}', "line 2, column 2: expected a key"),
        (b'{"a": {"said": []}}\n{"b": {"said": []}} x', "line 2, column 21"),
        (b'[{"said": []}]\n\n, 1', "line 3, column 1: trailing"),
        (b'[{"said": []} {"said": []}]', "line 1, column 15: expected , or ]"),
    ],
)
def test_the_place_of_what_is_wrong(data: bytes, says: str) -> None:
    for size in (1, 3, 1 << 20):
        assert says in cut(data, size)


def test_a_record_that_is_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST", 2_000)
    monkeypatch.setattr(stream, "_CHUNK", 100)
    data = b'[{"said": []},\n{"said": ["' + b"x" * 9_000 + b'"]}]'
    with pytest.raises(DataError, match="the record that begins in line 2 is longer than"):
        list(iterate_pieces(io.BytesIO(data), "x"))
    with pytest.raises(DataError, match="line 2 is longer than"):
        list(iterate_lines(io.BytesIO(b"a\n" + b"x" * 3_000), "x"))


def test_whole_numbers_of_any_length_are_cut() -> None:
    data = b'[{"said": [], "more": %b}]' % (b"9" * 10_000)
    (one,) = iterate_pieces(io.BytesIO(data), "x")
    assert bytes(one.raw) == data[1:-1]


def test_a_gzip_file_is_unpacked(tmp_path: Path) -> None:
    whole = json.dumps([{"said": ["é"] * 50, "n": n} for n in range(2_000)]).encode()
    path = tmp_path / "data.json.gz"
    path.write_bytes(packed := gzip.compress(whole))
    assert len(list(read_records(path))) == 2_000
    for damaged in (packed[: len(packed) // 2], packed[:200] + b"\0" * 50 + packed[250:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"cannot be read to its end|not UTF-8|not valid JSON"):
            list(read_records(path))


@pytest.mark.parametrize(
    ("begin", "what"),
    [
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\xfd7zXZ\x00", "an xz file"),
        (b"BZh91", "a bzip2 file"),
        (b"\x28\xb5\x2f\xfd", "a Zstandard file"),
        (b"PAR1", "a Parquet file"),
    ],
)
def test_other_packed_files_are_named(tmp_path: Path, begin: bytes, what: str) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(begin + b"\0" * 100)
    with pytest.raises(DataError, match=f"this is {what}; unpack it"):
        list(read_records(path))


def test_lines_have_their_numbers_and_places() -> None:
    found = list(iterate_lines(io.BytesIO("\ufeffone\r\ntw\u2028o\n\nend".encode()), "x"))
    assert found == [(1, "one"), (2, "tw\u2028o"), (3, ""), (4, "end")]
    with pytest.raises(DataError, match=r"byte 5 \(line 2\) is not UTF-8"):
        list(iterate_lines(io.BytesIO(b"one\n\xc3\x28\xff\n"[:4] + b"a\xff\n"), "x"))
