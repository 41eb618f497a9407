"""A file that was changed after it was written is refused; files that a kill left are not."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.core.digest import compute_sha256
from edgen.core.errors import DamagedError
from edgen.core.kept_files import (
    DIGESTS,
    Digest,
    find_damage,
    forget_digests,
    has_digest,
    is_kept,
    read_digests,
    require_kept,
    settle_digests,
    write_kept_lines,
    write_kept_texts,
)

LINES = [b"one", b"two", b"three"]
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flipped bit": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "cut end": lambda data: data[:-3],
    "cut line": lambda data: data[: data.rindex(b"\n", 0, -1) + 1],
    "swapped lines": lambda _data: b"two\none\nthree\n",
    "repeated line": lambda data: data + b"three\n",
    "no content": lambda _data: b"",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    write_kept_lines(tmp_path, tmp_path / "in" / "a.jsonl", LINES)
    return tmp_path / "in" / "a.jsonl"


class TestDamage:
    @pytest.mark.parametrize("damage", DAMAGES)
    def test_what_was_changed_is_refused_with_what_mends_it(self, path: Path, damage: str) -> None:
        require_kept(path, "")
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
        with pytest.raises(DamagedError, match=r"a\.jsonl: it was changed .* Make it again\."):
            require_kept(path, "Make it again.")
        assert [one.name for one in find_damage(path.parents[1])] == ["in/a.jsonl"]
        assert not is_kept(path)

    def test_a_cut_is_told_in_lines(self, path: Path) -> None:
        path.write_bytes(b"one\n")
        assert [one.what for one in find_damage(path.parents[1])] == [
            "it was changed after edgen wrote it: it has 1 lines instead of 3"
        ]

    def test_a_missing_file_is_for_its_reader_unless_it_only_grows(self, path: Path) -> None:
        path.unlink()
        require_kept(path, "")
        assert [one.missing for one in find_damage(path.parents[1])] == [True]
        votes = path.with_name("votes.jsonl")
        write_kept_lines(path.parents[1], votes, LINES, grows=True)
        votes.unlink()
        with pytest.raises(DamagedError, match="it is missing"):
            require_kept(votes, "")

    def test_lines_may_be_appended_to_what_people_write(self, path: Path) -> None:
        votes = path.with_name("votes.jsonl")
        write_kept_lines(path.parents[1], votes, LINES, grows=True)
        with votes.open("ab") as file:
            file.write(b"four\n")
        require_kept(votes, "")
        votes.write_bytes(votes.read_bytes().replace(b"two", b"twp"))
        with pytest.raises(DamagedError, match="its beginning was changed"):
            require_kept(votes, "")

    def test_a_file_without_an_entry_is_taken_as_it_is(self, path: Path) -> None:
        other = path.with_name("b.jsonl")
        other.write_text("by hand\n")
        require_kept(other, "")
        assert (has_digest(path), has_digest(other)) == (True, False)
        forget_digests(path.parents[1], ["in"])
        path.write_text("by hand\n")
        require_kept(path, "")

    def test_every_flipped_bit_of_the_digests_themselves_is_noticed_or_changes_nothing(
        self, path: Path
    ) -> None:
        folder = path.parents[1]
        before, data = read_digests(folder), (folder / DIGESTS).read_bytes()
        for place in range(len(data) * 8):
            flipped = bytearray(data)
            flipped[place // 8] ^= 1 << place % 8
            (folder / DIGESTS).write_bytes(flipped)
            try:
                assert read_digests(folder) == before, place
            except DamagedError:
                continue
        (folder / DIGESTS).write_bytes(b"")
        with pytest.raises(DamagedError, match="this list of digests is damaged"):
            require_kept(path, "")

    @pytest.mark.parametrize("name", ["../a", "/etc/passwd", "in/../../a", "in//a", "", "a\0b"])
    def test_a_strangers_digests_name_no_file_elsewhere(self, path: Path, name: str) -> None:
        folder, entries = path.parents[1], {name: next(iter(read_digests(path.parents[1]).values()))}
        digest = compute_sha256(msgspec.json.encode(entries, order="deterministic"))
        (folder / DIGESTS).write_bytes(msgspec.json.encode({"layout": 1, "sha256": digest, "files": entries}))
        with pytest.raises(DamagedError, match="outside of its folder"):
            read_digests(folder)

    def test_a_strangers_digests_have_one_for_each_file(self, path: Path) -> None:
        entries: dict[str, Any] = {"in/a.jsonl": {"digests": [None]}}
        digest = compute_sha256(msgspec.json.encode(entries, order="deterministic"))
        noted = msgspec.json.encode({"layout": 1, "sha256": digest, "files": entries})
        (path.parents[1] / DIGESTS).write_bytes(noted)
        with pytest.raises(DamagedError, match="has no digest"):
            read_digests(path.parents[1])


class TestWriting:
    def test_what_stands_already_is_not_written_again(self, tmp_path: Path) -> None:
        texts = {tmp_path / "a": "1", tmp_path / "b": "2"}
        write_kept_texts(tmp_path, texts)
        before = {name: (tmp_path / name).stat().st_ino for name in os.listdir(tmp_path)}
        write_kept_texts(tmp_path, texts)
        assert {name: (tmp_path / name).stat().st_ino for name in os.listdir(tmp_path)} == before
        (tmp_path / "a").write_text("x")
        write_kept_texts(tmp_path, texts)
        assert ((tmp_path / "a").read_text(), [*find_damage(tmp_path)]) == ("1", [])

    def test_the_digest_is_that_of_sha256sum(self, path: Path) -> None:
        noted = json.loads((path.parents[1] / DIGESTS).read_bytes())["files"]["in/a.jsonl"]["digests"]
        assert noted == [
            {
                "sha256": "b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2",
                "size": 14,
                "lines": 3,
            }
        ]

    @pytest.mark.crash
    @pytest.mark.parametrize("older", [False, True], ids=["replaced", "of an older edgen"])
    def test_a_kill_at_any_rename_leaves_a_file_that_holds(self, path: Path, older: bool) -> None:
        folder, whole = path.parents[1], {b"one\ntwo\nthree\n", b"new\n"}
        if older:
            (folder / DIGESTS).unlink()
        renames = 0
        while _killed_after(renames, lambda: write_kept_lines(folder, path, [b"new"])):
            assert [*find_damage(folder)] == []
            require_kept(path, "")
            assert path.read_bytes() in whole
            renames += 1
        assert renames >= 2
        assert path.read_bytes() == b"new\n"
        assert [one.digests for one in read_digests(folder).values()] == [(Digest.of(b"new\n"),)]
        path.write_bytes(b"nex\n")
        assert not is_kept(path)

    @pytest.mark.crash
    @pytest.mark.parametrize("grows", [False, True])
    @pytest.mark.parametrize("there", [False, True])
    def test_whoever_locks_next_keeps_one_digest_of_each_file(
        self, tmp_path: Path, there: bool, grows: bool
    ) -> None:
        lefts = set()
        for renames in range(4):
            folder = tmp_path / str(renames)
            folder.mkdir()
            path = folder / "a.jsonl"
            if there:
                write_kept_lines(folder, path, LINES, grows=grows)
            _killed_after(
                renames, lambda path=path: write_kept_lines(path.parent, path, [*LINES, b"4"], grows=grows)
            )
            lefts.add(len(read_digests(folder)["a.jsonl"].digests) if (folder / DIGESTS).exists() else 0)
            settle_digests(folder)
            content = path.read_bytes() if path.exists() else None
            digests = {name: entry.digests for name, entry in read_digests(folder).items()}
            assert digests == ({} if content is None else {"a.jsonl": (Digest.of(content),)})
        assert 2 in lefts

    def test_a_damaged_file_stays_damaged_when_digests_are_settled(self, path: Path) -> None:
        folder = path.parents[1]
        _killed_after(1, lambda: write_kept_lines(folder, path, [b"new"]))
        before = read_digests(folder)
        path.write_bytes(b"nex\n")
        settle_digests(folder)
        assert read_digests(folder) == before
        assert len(before["in/a.jsonl"].digests) == 2
        assert not is_kept(path)


def _killed_after(renames: int, work: Callable[[], object]) -> bool:
    """Return whether a process that does this work is killed after this many renames."""
    if (process := os.fork()) == 0:
        left = renames

        def hook(event: str, _arguments: object) -> None:
            nonlocal left
            if event == "os.rename":
                if left == 0:
                    os._exit(9)
                left -= 1

        try:
            sys.addaudithook(hook)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code in (0, 9)
    return code == 9
