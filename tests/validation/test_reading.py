"""Files of records: lists and lines are split the same way; errors name the place and the fix."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.errors import DataError
from edgen.validation.reading import cut, find_inputs, read_data, read_records
from tests.dose import dose

json_objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
        lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=3), children, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)  # fmt: skip


def decoded(data: bytes) -> list[Any]:
    return [msgspec.json.decode(raw) for raw in cut(data, "x")]


@given(
    st.lists(json_objects, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
)
@settings(max_examples=dose(10, 40))
def test_a_list_and_lines_hold_the_same_records(
    records: list[Any], ascii_only: bool, indent: int | None, mark: bool
) -> None:
    start = b"\xef\xbb\xbf" if mark else b""
    as_list = json.dumps(records, ensure_ascii=ascii_only, indent=indent)
    as_lines = "\r\n".join(json.dumps(record, ensure_ascii=ascii_only) for record in records)
    assert decoded(start + as_list.encode()) == records
    assert decoded(start + as_lines.encode() + b"\n\n") == records


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b'"text"', "holds no records"),
        (b"17", "holds no records"),
        (b"Teacher: Hello", "holds no records"),
        (b'[{"a": 1},\n {"a": }]', "line 2, column 8"),
        (b'[{"a": 1},\n {"a": 2}', "line 2 ends in the middle"),
        (b"[1] x", "trailing characters"),
        (b'{"a": 1}\n{"a": 2}\n{"a" 3}\n', "line 3, column 6"),
        (b'{"a": 1}\n{"a": 2', "line 2 ends in the middle"),
        (b'{"a": 1}\n\n{"a": 2\n{"a": 3}\n', "line 3"),
        (b'{"a": 1}\n{"a": \r\n{"a": 3}\n', "line 2 ends in the middle"),
        (b'["\xff"]', "byte 2 (line 1) is not UTF-8"),
        (b'[\n"' + "é".encode() * 600_000 + b'\n\xe9"]', "byte 1200004 (line 3) is not UTF-8"),
        (b'[{"a":"' + "é".encode()[:1], "is not UTF-8"),
        ('[{"a": 1}]'.encode("utf-16"), "byte 0 (line 1) is not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
    ],
)
def test_what_is_no_file_of_records(data: bytes, says: str) -> None:
    with pytest.raises(DataError) as caught:
        cut(data, "some.json")
    assert says in str(caught.value)
    assert "some.json" in str(caught.value)


@given(st.binary(max_size=60) | st.text(alphabet='[]{},:"\\ \n1ae.', max_size=40).map(str.encode))
def test_any_bytes_are_cut_or_refused(data: bytes) -> None:
    try:
        records = cut(data, "x")
    except DataError:
        return
    assert all(isinstance(record, msgspec.Raw) for record in records)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(read_records(tmp_path / "missing.json"))
    with pytest.raises(DataError, match="this is a folder"):
        list(read_records(tmp_path))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_records(tmp_path / "nul\0byte.json"))


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        os.truncate(file.fileno(), (1 << 30) + 1)
    assert path.stat().st_blocks == 0
    with pytest.raises(DataError, match="larger than 1024 MiB"):
        read_data(path)


def test_what_a_path_stands_for(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "shards").mkdir(parents=True)
    (run / "inputs").mkdir()
    for name in ("conversations_train10.json", "conversations_train2.json", "notes.txt", "manifest.json"):
        (run / "shards" / name).write_text("[]")
    (run / "inputs" / "space.yaml").write_text("name: x")
    found = find_inputs(run)
    assert [path.name for path in found.files] == ["conversations_train2.json", "conversations_train10.json"]
    assert found.manifest == run / "shards"
    assert found.space == run / "inputs" / "space.yaml"
    assert find_inputs(run / "shards") == found
    # any folder: without a manifest it has no space either
    (run / "shards" / "manifest.json").unlink()
    assert find_inputs(run / "shards").space is None
    assert find_inputs(run / "job.yaml").files == (run / "job.yaml",)


def test_folders_without_records(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no"):
        find_inputs(tmp_path)
    (tmp_path / "run.db").touch()
    with pytest.raises(DataError, match="no shards yet"):
        find_inputs(tmp_path)


def test_paths_that_cannot_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        list(read_records(find_inputs(tmp_path / ("x" * 300)).files[0]))

    def refuse(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        find_inputs(tmp_path)


@pytest.mark.parametrize("bad", [b'{"text": "\\ud800 half"}', b'{"probability": NaN}'])
def test_what_only_python_writes_spoils_its_own_record(bad: bytes) -> None:
    good = b'{"text": "whole"}'
    for data in (b"[%b, %b, %b]" % (good, bad, good), b"\n".join((good, bad, good))):
        first, spoilt, last = cut(data, "x")
        assert msgspec.json.decode(first) == msgspec.json.decode(last) == {"text": "whole"}
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(spoilt)
    with pytest.raises(DataError, match="not valid JSON"):
        cut(b'{"a": 1},{"b": 2}\n', "x")
