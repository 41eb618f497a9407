"""A file is written completely or not at all, never through a link, and no write waits for a pipe."""

import errno
import os
import stat
from pathlib import Path

import pytest

from edgen.core import files
from edgen.core.errors import RunError
from edgen.core.files import (
    Part,
    choose_temporary_name,
    find_target,
    open_lock,
    read_regular,
    replace_file,
    write_new,
    write_whole,
)
from edgen.core.kept_files import refuse_links, remove_temporary_files


def test_a_file_is_written_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "ü\n")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_file_has_the_rights_that_the_person_gives_new_files(tmp_path: Path) -> None:
    write_whole(tmp_path / "ours", "x")
    (tmp_path / "theirs").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def test_what_goes_wrong_midway_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("first")

    def half() -> None:
        with replace_file(path) as file:
            file.write(b"sec")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_link_is_replaced_and_what_it_leads_to_stands(tmp_path: Path) -> None:
    theirs = tmp_path / "bashrc"
    theirs.write_text("theirs")
    path = tmp_path / "a.txt"
    path.symlink_to(theirs)
    write_whole(path, "ours")
    assert theirs.read_text() == "theirs"
    assert not path.is_symlink()


def test_the_temporary_name_cannot_be_guessed_and_is_known_again(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 120)
    names = {choose_temporary_name(path) for _ in range(100)}
    assert len(names) == 100
    assert {find_target(name.name) for name in names} == {"ä" * 100}
    assert find_target(choose_temporary_name(Path("job.yaml")).name) == "job.yaml"
    assert not any(map(find_target, ("job.yaml", ".job.yaml.tmp", ".x.part", ".bashrc", "")))
    write_whole(path, "a long name")
    assert path.read_text() == "a long name"


def test_a_new_file_takes_no_place_that_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_new(path, "first")
    with pytest.raises(FileExistsError) as caught:
        write_new(path, "second")
    assert caught.value.filename == str(path)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "dangling", "x")
    assert path.read_text() == "first"
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "dangling"]


def test_a_new_file_on_a_disk_without_links_takes_no_place_that_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for text in (b"first", b"second"):
        part = Part(path)
        part.write(text)
        part.close()
        if text == b"first":
            part.publish_without_links()
        else:
            with pytest.raises(FileExistsError):
                part.publish_without_links()
        part.discard()
    assert path.read_text() == "first"
    path.unlink()
    gone = Part(path)
    gone.discard()
    with pytest.raises(FileNotFoundError):
        gone.publish_without_links()
    assert os.listdir(tmp_path) == []


def test_an_error_names_the_file_that_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "no folder" / "a.txt"
    with pytest.raises(FileNotFoundError) as caught:
        Part(path)
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("make", [True, False])
def test_a_lock_is_no_link_and_no_pipe(tmp_path: Path, make: bool) -> None:
    theirs = tmp_path / "bashrc"
    theirs.write_text("theirs")
    (tmp_path / "link").symlink_to(theirs)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    for name, words in (("link", "link"), ("dangling", "link"), ("pipe", "pipe")):
        with pytest.raises(OSError, match=words):
            open_lock(tmp_path / name, make=make)
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(IsADirectoryError):
        open_lock(tmp_path, make=make)


def test_a_lock_is_no_second_name_of_a_file(tmp_path: Path) -> None:
    theirs = tmp_path / "thesis.tex"
    theirs.write_text("theirs")
    os.link(theirs, tmp_path / "run.lock")
    with pytest.raises(OSError, match="hard link"):
        open_lock(tmp_path / "run.lock")


def test_a_lock_is_made_once_and_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with pytest.raises(FileNotFoundError):
        open_lock(path, make=False)
    with open_lock(path) as file:
        file.write(b"me")
    with open_lock(path) as file:
        file.seek(0)
        assert file.read() == b"me"
    assert stat.S_ISREG(path.lstat().st_mode)


def test_only_a_regular_file_of_bounded_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4") as caught:
        read_regular(path, 4)
    assert caught.value.errno == errno.EOVERFLOW
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=name):
            read_regular(tmp_path / name, 5)
    with pytest.raises(OSError, match="device"):
        read_regular(Path("/dev/zero"), 5)


def test_a_folder_with_a_link_at_any_depth_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "previous" / "1" / "shards").mkdir(parents=True)
    (run / "job.yaml").write_text("x")
    refuse_links(run)
    refuse_links(tmp_path / "nothing")
    (tmp_path / "other name").symlink_to(run)
    refuse_links(tmp_path / "other name")  # the person's own link to the folder
    (run / "previous" / "1" / "shards" / "a.json").symlink_to("/etc/passwd")
    with pytest.raises(RunError, match=r"shards/a\.json: this is a link"):
        refuse_links(run)
    refuse_links(run, ["job.yaml", "shards"])
    with pytest.raises(RunError, match=r"shards/a\.json: this is a link"):
        refuse_links(tmp_path / "other name", ["previous"])


def test_a_pipe_in_a_folder_is_refused_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "job.yaml")
    with pytest.raises(RunError, match="this is a pipe"):
        refuse_links(tmp_path)


def test_what_kills_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "mine").mkdir()
    ours = [choose_temporary_name(tmp_path / "job.yaml"), choose_temporary_name(tmp_path / "inputs" / "a.j2")]
    theirs = [
        choose_temporary_name(tmp_path / "thesis.tex"),
        choose_temporary_name(tmp_path / "mine" / "a"),
        tmp_path / "job.yaml",
    ]
    for path in (*ours, *theirs):
        path.touch()
    remove_temporary_files(tmp_path, ["job.yaml", "inputs"])
    assert not any(path.exists() for path in ours)
    assert all(path.exists() for path in theirs)


def test_what_kills_left_for_chosen_names_is_removed(tmp_path: Path) -> None:
    gone, left = choose_temporary_name(tmp_path / "a.jsonl"), choose_temporary_name(tmp_path / "b.jsonl")
    for path in (gone, left):
        path.touch()
    with files.replace_file(tmp_path / "a.jsonl") as at_work:
        at_work.write(b"1")
        files.remove_leftovers_for(tmp_path, lambda name: name == "a.jsonl")
    assert {path.name for path in tmp_path.iterdir()} == {"a.jsonl", left.name}


def look_again() -> None:
    """Look as another process would: this one has already listed the folder."""
    files._find_leftovers.cache_clear()


def fail_within(folder: Path) -> None:
    """Begin a new folder, and raise an error."""

    def work() -> None:
        with files.new_folder(folder) as place:
            (place / "one").write_text("1")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        work()


class TestLeftovers:
    def test_those_of_dead_processes_go_and_all_else_stays(self, tmp_path: Path) -> None:
        dead = choose_temporary_name(tmp_path / "a.txt")
        dead.write_text("half")
        others = [
            choose_temporary_name(tmp_path / "b.txt"),
            tmp_path / ".a.txt.part",
            tmp_path / ".a.txt.0123456789abcdef.part.old",
        ]
        for other in others:
            other.write_text("not ours to remove")
        (tmp_path / "linked").write_text("elsewhere")
        link = choose_temporary_name(tmp_path / "a.txt")
        link.symlink_to(tmp_path / "linked")
        write_whole(tmp_path / "a.txt", "whole")
        assert not dead.exists()
        assert all(other.exists() for other in [*others, link, tmp_path / "linked"])

    def test_a_file_that_somebody_is_writing_stays(self, tmp_path: Path) -> None:
        first = files.Part(tmp_path / "a.txt")
        first.write(b"first")
        look_again()
        write_whole(tmp_path / "a.txt", "second")
        first.close()
        look_again()
        write_whole(tmp_path / "a.txt", "third")  # it is closed, and not yet published
        first.publish()
        assert (tmp_path / "a.txt").read_bytes() == b"first"
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]

    def test_a_second_name_of_a_whole_file_goes(self, tmp_path: Path) -> None:
        """A kill between a link and its unlink leaves a second name."""
        (tmp_path / "a.txt").write_text("whole")
        choose_temporary_name(tmp_path / "a.txt").hardlink_to(tmp_path / "a.txt")
        with pytest.raises(FileExistsError):
            files.write_new(tmp_path / "a.txt", "other")
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
        assert (tmp_path / "a.txt").read_text() == "whole"

    def test_a_folder_is_there_whole_or_not_at_all(self, tmp_path: Path) -> None:
        dead = choose_temporary_name(tmp_path / "new")
        (dead / "below").mkdir(parents=True)
        (dead / "below" / "file").write_text("half")
        fail_within(tmp_path / "new")
        assert not list(tmp_path.iterdir())
        with files.new_folder(tmp_path / "new") as place:
            (place / "one").write_text("1")
            look_again()
            fail_within(tmp_path / "new")
            assert (place / "one").exists(), "its process lives"
        assert [path.name for path in tmp_path.iterdir()] == ["new"]
