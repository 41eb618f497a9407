"""A run's folder may be hostile: no command writes or reads through a link in it, or waits for a pipe."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.command import Command, get_command
from tests.merging.test_merge import job

# Places for a link, by edgen's use of them. Every command runs with these ...
PLACES = ["job.yaml", "run.lock", "run.db", "inputs/zzz.j2", "shards", "previous/1"]
# ... and one command with the others, because all commands share the check.
MORE_PLACES = [
    "run.db-wal",
    "rejected.jsonl",
    "report.html",
    "inputs",
    "inputs/space.yaml",
    "shards/manifest.json",
    "previous/.gathering",
    "pairs/pairs.jsonl",
    "pairs/judged",
    "adherence",
    "adherence/0123456789abcdef.db",
    "comparisons",
    "merged",
    "run.batches/00001.default.jsonl",
    "arms",
    "arms/a/run.lock",
    ".job.yaml.0123456789abcdef.part",
]
OLD_TEMPORARIES = [
    ".job.yaml.tmp",
    "inputs/.space.yaml.tmp",
    ".rejected.jsonl.part",
    ".report.html.part",
    "shards/.manifest.json.part",
]


def commands(path: Path, run: Path, other: Path, to: Path) -> list[tuple[str | Path, ...]]:
    """Return every command that opens a run, on `run`; `other` is a valid run."""
    return [
        ("generate", path, "-o", run),
        ("status", run),
        ("show", run, "0"),
        ("merge", run, "-o", to / "merged"),
        ("merge", other, run, "-o", to / "merged"),
        ("pairs", run, "--by", "probability"),
        ("pairs", run, "--report"),
        ("export", run, "--to", "ed", "-o", to / "exported"),
        ("compare", run, other),
        ("report", run),
        ("stats", run),
        ("stats", run, "--judge", "3"),
        ("validate", run),
        ("validate", run / "shards"),
        ("estimate", path, "-o", run),
        ("batch", "list", run),
        ("batch", "cancel", run),
        ("batch", "read", run, path),
    ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a finished run, `run`, and its job, `job.yaml`."""
    from edgen.cli.app import app

    folder = tmp_path_factory.mktemp("sound")
    path = job(folder, conversations=3, backends={"default": {"type": "simulator"}})
    with pytest.raises(SystemExit) as ended:
        get_command(app)(["generate", str(path), "-o", str(folder / "run")], prog_name="edgen")
    assert not ended.value.code
    return folder


def state_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.mark.parametrize("place", PLACES)
def test_a_link_in_a_run_is_refused_by_every_command(
    place: str, sound: Path, command: Command, tmp_path: Path
) -> None:
    run, theirs = linked(place, sound, tmp_path)
    before = state_of(theirs)
    to = tmp_path / "to"
    to.mkdir()
    for words in commands(sound / "job.yaml", run, sound / "run", to):
        ended = command(*words)
        assert ended.code == 2, (words, ended)
        assert f"{run / place}: this is a link" in ended.err.replace("\n", " "), (words, ended.err)
        assert list(to.iterdir()) == [], words
    listed = command("runs", tmp_path)
    assert listed.code == 0
    assert "this is a link" in listed.out
    assert state_of(theirs) == before


@pytest.mark.parametrize("place", ["job.yaml", "run.db"])
def test_a_link_that_leads_nowhere_makes_a_run_no_folder_of_files(
    place: str, sound: Path, command: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(sound / "run", run)
    (run / place).unlink()
    (run / place).symlink_to(tmp_path / "nowhere")
    for word in ("validate", "stats", "status", "report"):
        ended = command(word, run)
        assert ended.code == 2, (word, ended)
        assert f"{run / place}: this is a link" in ended.err.replace("\n", " "), (word, ended.err)


@pytest.mark.parametrize("place", MORE_PLACES)
def test_a_link_anywhere_in_a_run_is_refused(
    place: str, sound: Path, command: Command, tmp_path: Path
) -> None:
    run, theirs = linked(place, sound, tmp_path)
    before = state_of(theirs)
    ended = command("generate", sound / "job.yaml", "-o", run)
    assert ended.code == 2
    assert f"{run / place}: this is a link" in ended.err.replace("\n", " ")
    assert state_of(theirs) == before


def linked(place: str, sound: Path, folder: Path) -> tuple[Path, Path]:
    """Return a run with a link in this place, and the folder of the link's target. The target has the
    original content, so only the link is wrong."""
    run, theirs = folder / "run", folder / "theirs"
    shutil.copytree(sound / "run", run)
    theirs.mkdir()
    link = run / place
    if link.exists():
        link.rename(theirs / "it")
    else:
        link.parent.mkdir(parents=True, exist_ok=True)
        (theirs / "it").write_text("theirs")
    link.symlink_to(theirs / "it")
    return run, theirs


@pytest.mark.parametrize("place", ["job.yaml", "run.lock", "run.db"])
def test_a_pipe_in_a_run_is_refused_and_not_waited_for(
    place: str, sound: Path, command: Command, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(sound / "run", run)
    (run / place).unlink(missing_ok=True)
    os.mkfifo(run / place)
    to = tmp_path / "to"
    to.mkdir()
    for words in commands(sound / "job.yaml", run, sound / "run", to):
        ended = command(*words)
        assert ended.code == 2, (words, ended)
        assert f"{run / place}: this is a pipe" in ended.err.replace("\n", " "), (words, ended.err)
    assert "this is a pipe" in command("runs", tmp_path).out
    # an estimate for another job passes over unreadable runs
    assert command("estimate", sound / "job.yaml", "--runs", tmp_path, "-o", tmp_path / "new").code == 0


def test_a_pipe_for_a_job_or_a_template_is_not_waited_for(
    sound: Path, command: Command, tmp_path: Path
) -> None:
    run, shell = tmp_path / "run", tmp_path / "shell"
    shutil.copytree(sound / "run", run)
    (run / "job.yaml").unlink()
    os.mkfifo(run / "job.yaml")
    (tmp_path / "link.yaml").symlink_to("run/job.yaml")
    for pipe in (run / "job.yaml", tmp_path / "link.yaml"):
        for words in (("generate", pipe, "-o", run), ("preview", pipe), ("estimate", pipe), ("doctor", pipe)):
            ended = command(*words)
            assert ended.code == 2, (words, ended)
            assert "this is a pipe" in ended.err + ended.out
    os.mkfifo(tmp_path / "pipe.j2")
    opening = ("--opening", "system", "--opening-prompt", tmp_path / "pipe.j2")
    ended = command("export", sound / "run", "--to", "trl-sft", "-o", tmp_path / "out", *opening)
    assert (ended.code, "this is a pipe" in ended.err) == (2, True)
    # A pipe that the shell opens, as in <(…), has no name in a folder and is read.
    reading, writing = os.pipe()
    os.write(writing, (sound / "job.yaml").read_bytes())
    os.close(writing)
    try:
        assert command("generate", f"/dev/fd/{reading}", "-o", shell).code == 0
    finally:
        os.close(reading)


def test_a_temporary_name_of_old_is_no_way_out(sound: Path, command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(sound / "run", run)
    (tmp_path / "bashrc").write_text("theirs")
    for place in OLD_TEMPORARIES:
        (run / place).symlink_to(tmp_path / "bashrc")
    # A link in a subfolder is refused; a link in the run's folder under a name no longer in use is not a
    # problem.
    assert command("generate", sound / "job.yaml", "-o", run, "-n", "4").code == 2
    for place in OLD_TEMPORARIES:
        if "/" in place:
            (run / place).unlink()
    for words in (("generate", sound / "job.yaml", "-o", run, "-n", "4"), ("report", run)):
        ended = command(*words)
        assert ended.code == 0, ended.err
    assert (tmp_path / "bashrc").read_text() == "theirs"


def test_the_own_path_of_a_run_may_be_a_link(sound: Path, command: Command, tmp_path: Path) -> None:
    run = tmp_path / "elsewhere"
    shutil.copytree(sound / "run", run)
    (tmp_path / "run").symlink_to(run)
    (run / "notes.txt").symlink_to("/etc/hostname")  # a person's own file
    to = tmp_path / "to"
    to.mkdir()
    for words in (("generate", sound / "job.yaml", "-o"), ("status",), ("report",), ("validate",)):
        ended = command(*words, tmp_path / "run")
        assert ended.code == 0, ended.err


def test_a_ledger_with_another_name_is_not_written(sound: Path, command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(sound / "run", run)
    for name in ("run.db", "run.db-wal", "run.db-shm", "run.lock"):
        (run / name).touch()
        os.link(run / name, tmp_path / name)
        ended = command("generate", sound / "job.yaml", "-o", run, "-n", "4")
        assert ended.code == 2
        assert "hard link" in ended.err
        assert command("status", run).code == 0
        (tmp_path / name).unlink()
    assert command("generate", sound / "job.yaml", "-o", run, "-n", "4").code == 0


def test_a_second_name_that_a_kill_left_is_swept(sound: Path, command: Command, tmp_path: Path) -> None:
    """A new file has two names for a moment: its temporary name and its final one."""
    run = tmp_path / "run"
    shutil.copytree(sound / "run", run)
    os.link(run / "run.db", run / ".run.db.0123456789abcdef.part")
    ended = command("generate", sound / "job.yaml", "-o", run, "-n", "4")
    assert ended.code == 0, ended.err
    assert not (run / ".run.db.0123456789abcdef.part").exists()


def test_a_report_embeds_only_what_the_job_names(sound: Path, command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(sound / "run", run)
    (run / "inputs" / "zzz.j2").write_text("a stray secret")
    assert command("report", run).code == 0
    page = (run / "report.html").read_text()
    assert "a stray secret" not in page
    assert "inputs/space.yaml" in page
    ended = command("merge", run, "-o", tmp_path / "merged")
    assert ended.code == 0, ended.err
    assert not (tmp_path / "merged" / "inputs" / "zzz.j2").exists()


def test_what_a_killed_first_start_left_is_no_obstacle(sound: Path, command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "inputs").mkdir(parents=True)
    (run / "run.lock").touch()
    left = [run / ".job.yaml.0123456789abcdef.part", run / "inputs" / ".space.yaml.0123456789abcdef.part"]
    for path in left:
        path.write_text("half")
    ended = command("generate", sound / "job.yaml", "-o", run)
    assert ended.code == 0, ended.err
    assert not any(path.exists() for path in left)
