"""Shards: the bytes of json.dump, complete or absent on the disk, verified by a manifest."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import resource
import signal
import subprocess
import tempfile
import textwrap
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.config import Shards
from edgen.core.errors import DataError, RunError
from edgen.core.files import write_lines
from edgen.store.shards import (
    SplitCounts,
    find_strays,
    read_manifest,
    verify_manifest,
    write_list_atomic,
    write_shards,
)
from tests import fork_server

numbers = st.integers(-(2**63), 2**64 - 1) | st.sampled_from([0.0, 0.2, 1.0, -0.5, 0.0001, 123456.75])
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=12),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=4), children, max_size=3)
    ),
    max_leaves=8,
)
records = st.dictionaries(st.text(max_size=6), values, max_size=4)


def tagged(number: int, test_every: int = 4) -> list[tuple[bool, bytes]]:
    return [(i % test_every == 0, msgspec.json.encode({"id": i, "text": "é\n\\"})) for i in range(number)]


def write(folder: Path, made: list[tuple[bool, bytes]], train: int = 2, test: int = 1) -> dict[str, Any]:
    tests = sum(is_test for is_test, _ in made)
    counts = SplitCounts(train=len(made) - tests, test=tests)
    return write_shards(folder, iter(made), counts, Shards(train=train, test=test), {"job": {"name": "x"}})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def split(items: list[Any], parts: int) -> list[list[Any]]:
    each, rest = divmod(len(items), parts)
    ends = list(itertools.accumulate(each + (i < rest) for i in range(parts)))
    return [items[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.lists(st.tuples(st.booleans(), records), max_size=12), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=25)
def test_shards_hold_the_records_as_json_dump_writes_them(
    made: list[tuple[bool, Any]], train: int, test: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, [(is_test, msgspec.json.encode(record)) for is_test, record in made], train, test)
        expected = {}
        for side, word, parts in ((False, "train", train), (True, "eval", test)):
            chosen = split([record for is_test, record in made if is_test == side], parts)
            for i, part in enumerate(chosen):
                number = "" if side and test == 1 else i + 1
                expected[f"conversations_{word}{number}.json"] = json.dumps(
                    part, indent=4, ensure_ascii=False
                ).encode()
        written = contents(folder)
        assert written.pop("manifest.json")
        assert written == expected
        assert verify_manifest(folder, {k: len(json.loads(v)) for k, v in expected.items()}) == []


def test_names_and_sizes_are_eds(tmp_path: Path) -> None:
    manifest = write(tmp_path, tagged(40), train=4)
    assert [(file["path"], file["side"], file["records"]) for file in manifest["files"]] == [
        ("conversations_train1.json", "train", 8),
        ("conversations_train2.json", "train", 8),
        ("conversations_train3.json", "train", 7),
        ("conversations_train4.json", "train", 7),
        ("conversations_eval.json", "test", 10),
    ]
    assert sorted(contents(tmp_path)) == sorted(
        [file["path"] for file in manifest["files"]] + ["manifest.json"]
    )


def test_empty_shards_are_empty_lists(tmp_path: Path) -> None:
    write(tmp_path, [], train=2, test=2)
    files = contents(tmp_path)
    del files["manifest.json"]
    assert files == dict.fromkeys(
        ["conversations_train1.json", "conversations_train2.json", "conversations_eval1.json", "conversations_eval2.json"], b"[]",
    )  # fmt: skip


def test_the_manifest_says_what_is_there(tmp_path: Path) -> None:
    manifest = write(tmp_path, tagged(10))
    stored = json.loads((tmp_path / "manifest.json").read_bytes())
    assert stored == manifest
    assert stored["counts"] == {"train": 7, "test": 3}
    assert stored["job"] == {"name": "x"}
    assert stored["layout"] == {"name": "education-dialogue", "version": 1}
    for file in stored["files"]:
        data = (tmp_path / file["path"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "a", tagged(10))
    write(tmp_path / "b", tagged(10))
    write(tmp_path / "b", tagged(10))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_smaller_layout_removes_what_it_no_longer_names_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, tagged(20), train=9, test=2)
    ours = {"conversations_train77.json": b"mine", "notes.txt": b"mine", ".conversations.part": b"mine"}
    for name, data in ours.items():
        (tmp_path / name).write_bytes(data)
    leftover = tmp_path / ".conversations_train3.json.part"
    leftover.write_bytes(b"half a file")
    manifest = write(tmp_path, tagged(20), train=2, test=1)
    assert contents(tmp_path).keys() == {
        "manifest.json",
        *ours,
        *(file["path"] for file in manifest["files"]),
    }
    assert {name: (tmp_path / name).read_bytes() for name in ours} == ours


def test_a_manifest_that_names_other_files_removes_none_of_them(tmp_path: Path) -> None:
    victim = tmp_path / "precious.json"
    victim.write_bytes(b"mine")
    folder = tmp_path / "shards"
    write(folder, tagged(4))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    for path in ("../precious.json", str(victim), "conversations_train1.json/../../precious.json"):
        manifest["files"].append({**manifest["files"][0], "path": path})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert [str(problem) for problem in verify_manifest(folder) if "not the name" in problem.message]
    write(folder, tagged(4))
    assert victim.read_bytes() == b"mine"


def test_counts_that_do_not_fit_are_a_bug_and_change_nothing(tmp_path: Path) -> None:
    write(tmp_path, tagged(8))
    before = contents(tmp_path)
    for counts in (
        SplitCounts(train=5, test=2),
        SplitCounts(train=7, test=2),
        SplitCounts(train=6, test=3),
        SplitCounts(train=6, test=1),
    ):
        with pytest.raises(ValueError, match="than were counted"):
            write_shards(tmp_path, tagged(8), counts, Shards(train=3, test=2), {})
        assert contents(tmp_path) == before
    with pytest.raises(ValueError, match="files"):
        write_shards(tmp_path, [], SplitCounts(train=0, test=0), Shards(), {"files": []})
    assert contents(tmp_path) == before


def test_records_that_end_in_an_error_change_nothing(tmp_path: Path) -> None:
    write(tmp_path, tagged(8))
    before = contents(tmp_path)

    def broken() -> Iterator[tuple[bool, bytes]]:
        yield from tagged(4)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shards(tmp_path, broken(), SplitCounts(train=6, test=2), Shards(), {})
    assert contents(tmp_path) == before


def limited(folder: Path, call: str, limit: int) -> subprocess.CompletedProcess[str]:
    """Run `call` in a process whose files cannot grow beyond `limit` bytes, as if the disk were full."""
    code = f"""
        import sys
        from pathlib import Path
        from edgen.config import Shards
        from edgen.core.errors import StoppedError
        from edgen.core.files import write_lines
        from edgen.store.shards import SplitCounts, write_list_atomic, write_shards
        folder = Path(sys.argv[1])
        record = b'{{"text": "' + b"x" * 5000 + b'"}}'
        try:
            {call}
        except StoppedError as error:
            print(error)
            sys.exit(error.exit_code)
    """
    return fork_server.run(folder, code=textwrap.dedent(code), limits={resource.RLIMIT_FSIZE: limit})


@pytest.mark.parametrize(
    "call",
    [
        "write_shards(folder, ((False, record) for _ in range(400)), SplitCounts(400, 0), Shards(), {})",
        "write_list_atomic(folder / 'conversations_train1.json', (record for _ in range(400)))",
        "write_lines(folder / 'conversations_train1.json', (record for _ in range(400)))",
    ],
)
@pytest.mark.parametrize("limit", [100_000, 390_000])
@pytest.mark.integration
def test_a_full_disk_leaves_what_stood_there(tmp_path: Path, call: str, limit: int) -> None:
    write(tmp_path, tagged(8))
    before = contents(tmp_path)
    done = limited(tmp_path, call, limit)
    assert done.returncode == 4, done.stderr
    assert "the disk is full" in done.stdout
    assert str(tmp_path) in done.stdout
    assert contents(tmp_path) == before


def test_a_folder_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RunError, match="file"):
        write(tmp_path / "file", tagged(4))
    with pytest.raises(RunError, match="missing"):
        write_lines(tmp_path / "missing" / "rejected.jsonl", [])


@pytest.mark.crash
def test_a_kill_at_any_moment_leaves_old_or_new_files_and_the_next_write_mends_all(tmp_path: Path) -> None:
    code = """
        import itertools, os, signal, sys
        from pathlib import Path
        from edgen.config import Shards
        from edgen.store.shards import SplitCounts, write_shards
        folder, moment = Path(sys.argv[1]), int(sys.argv[2])
        steps = itertools.count()
        def hook(event, args):
            if event in ("open", "os.rename", "os.remove") and str(folder) in str(args[0]) and next(steps) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        made = [(i % 4 == 0, b'{"id": %d}' % i) for i in range(12)]
        write_shards(folder, made, SplitCounts(train=9, test=3), Shards(train=2, test=1), {})
    """
    write(tmp_path / "whole", tagged(20), train=4)
    for moment in range(40):
        folder = tmp_path / str(moment)
        old = write(folder, tagged(20), train=4)
        known = {file["path"] for file in old["files"]}
        done = fork_server.run(folder, str(moment), code=textwrap.dedent(code))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        for name in known & contents(folder).keys():
            assert isinstance(json.loads((folder / name).read_bytes()), list)
        write(folder, tagged(20), train=4)
        assert contents(folder) == contents(tmp_path / "whole")
    assert 12 < moment < 39


def test_memory_does_not_grow_with_the_records(tmp_path: Path) -> None:
    record = msgspec.json.encode({"text": "x" * 2000})

    def peak(number: int) -> int:
        tracemalloc.start()
        stream = ((i % 5 == 0, record) for i in range(number))
        write_shards(tmp_path, stream, SplitCounts(train=number * 4 // 5, test=number // 5), Shards(), {})
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(10_000) < peak(1_000) + 300_000


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda folder: (folder / "conversations_eval.json").unlink(),
            "conversations_eval.json cannot be read",
        ),
        (lambda folder: os.truncate(folder / "conversations_eval.json", 10), "bytes instead of"),
        (
            lambda folder: (folder / "conversations_eval.json").write_bytes(
                (folder / "conversations_eval.json").read_bytes().replace(b"0", b"1")
            ),
            "another sha256",
        ),
        (
            lambda folder: (folder / "manifest.json").write_bytes(
                (folder / "manifest.json").read_bytes().replace(b'"test": 2', b'"test": 3')
            ),
            "it says 3, but the files add up to 2",
        ),
    ],
)
def test_what_differs_from_the_manifest_is_found(tmp_path: Path, change: Any, says: str) -> None:
    write(tmp_path, tagged(8))
    assert verify_manifest(tmp_path) == []
    change(tmp_path)
    (problem,) = verify_manifest(tmp_path)
    assert says in problem.message


def test_what_is_not_listed_is_a_stray_and_no_difference(tmp_path: Path) -> None:
    write(tmp_path, tagged(8))
    assert find_strays(tmp_path) == []
    data = (tmp_path / "conversations_eval.json").read_bytes()
    for name in ("conversations_train6.json", "notes.json", ".hidden"):
        (tmp_path / name).write_bytes(data)
    assert find_strays(tmp_path) == ["conversations_train6.json", "notes.json"]
    assert verify_manifest(tmp_path) == []


def test_record_counts_are_compared_where_they_are_known(tmp_path: Path) -> None:
    write(tmp_path, tagged(8), train=1)
    assert verify_manifest(tmp_path, {"conversations_train1.json": 6, "conversations_eval.json": 2}) == []
    (problem,) = verify_manifest(tmp_path, {"conversations_train1.json": 5, "conversations_eval.json": 2})
    assert "holds 5 records instead of 6" in problem.message


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"layout": {}, "counts": {"train": 1}, "files": []}'],
)
def test_a_manifest_that_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(data)
    with pytest.raises(DataError, match="not a valid manifest of shards"):
        read_manifest(tmp_path)


def test_a_missing_manifest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        verify_manifest(tmp_path)


def test_lines_and_lists(tmp_path: Path) -> None:
    assert write_lines(tmp_path / "a.jsonl", iter([b"1", b"{}"])) == 2
    assert write_lines(tmp_path / "b.jsonl", []) == 0
    assert write_list_atomic(tmp_path / "c.json", iter([b'{"a":[]}'])) == 1
    assert contents(tmp_path) == {
        "a.jsonl": b"1\n{}\n",
        "b.jsonl": b"",
        "c.json": json.dumps([{"a": []}], indent=4).encode(),
    }
