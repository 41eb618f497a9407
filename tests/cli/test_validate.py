"""`edgen validate` on the command line: exit codes, the documented JSON, repaired copies."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer

from edgen.api import validating
from edgen.cli import validate
from edgen.cli.options import with_declared
from edgen.cli.output import run_guarded
from edgen.config import Shards
from edgen.core import resources
from edgen.store.shards import SplitCounts, write_shards
from tests.cli.command import get_command

EXAMPLES = resources.find_folder("validators") / "examples"
GOOD = json.loads((EXAMPLES / "valid" / "edgen.json").read_bytes())
BAD = json.loads((EXAMPLES / "invalid" / "rule-quote-comma.json").read_bytes())["record"]
SPACE = """
name: tiny
topics: [The water cycle, Rust]
student_preferences: [hands-on activities/real-world applications]
student_reactions: [and gets disengaged otherwise]
teacher_preferences: [direct instruction/lecture-based learning]
teacher_reactions: [but might adapt to the student]
"""
APP = typer.Typer()
APP.command()(with_declared(validate.command))


def call(*arguments: object) -> int:
    """Return the exit code of `edgen validate ARGUMENTS`."""
    try:
        return run_guarded(lambda: get_command(APP)([str(argument) for argument in arguments]))
    except SystemExit as end:
        return int(end.code or 0)


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(records)))
    return path


def numbered(number: int, **background: str) -> dict[str, Any]:
    return {
        **GOOD,
        "background_info": {**GOOD["background_info"], **background},
        "id": f"quickstart-{number:06d}-r0",
        "provenance": {**GOOD["provenance"], "scenario": number},
    }


def run_of(folder: Path, records: list[Any]) -> Path:
    """Write the parts of a run that this command reads."""
    (folder / "inputs").mkdir(parents=True)
    (folder / "inputs" / "space.yaml").write_text(SPACE)
    made = [(i == 0, msgspec.json.encode(record)) for i, record in enumerate(records)]
    write_shards(folder / "shards", made, SplitCounts(train=len(made) - 1, test=1), Shards(train=2), {})
    return folder


def test_valid_records_exit_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "data.json", GOOD)
    assert call(path) == 0
    assert capsys.readouterr().out == f"{path}: 1 record, 1 valid, 0 errors, 0 warnings\n"


def test_json_has_the_promised_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "data.json", GOOD, BAD)
    assert call(path, "--json") == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "records": 2,
        "valid": 1,
        "files": [
            {
                "path": str(path),
                "records": 2,
                "valid": 1,
                "problems": [
                    {
                        "record": 1,
                        "path": "$.conversation[1].text",
                        "problem": 'the text ends with the debris ",',
                        "severity": "error",
                        "kind": "quote_comma",
                    }
                ],
            }
        ],
    }
    assert captured.err == ""


def test_text_groups_by_kind_and_stays_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "data.json", *[BAD] * 500)
    assert call(path) == 3
    out = capsys.readouterr().out
    assert "500 records, 0 valid, 500 errors" in out
    assert 'error: turns with the debris ", at their end: 500' in out
    assert "… and 497 more; --json lists all" in out
    assert len(out.splitlines()) < 10


def test_many_files_stay_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(30):
        write(tmp_path / f"{i}.json", numbered(i))
    assert call(tmp_path) == 0
    out = capsys.readouterr().out
    assert "… and 10 more files" in out
    assert "together: 30 records, 30 valid" in out


def test_terminal_escapes_in_data_and_names_are_shown_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a\x1b[31m.json", {**GOOD, "ended_by": "\x1b]0;x\x07"})
    assert call(path) == 3
    assert "\x1b" not in capsys.readouterr().out


def test_a_file_name_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / b"a\xff.json".decode("utf-8", "surrogateescape")
    write(path, GOOD)
    assert call(path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["valid"] == 1


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b"Hello"])
def test_bad_files_exit_2_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(data)
    assert call(path, "--json") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(path) in captured.err
    assert "Traceback" not in captured.err


def test_a_run_is_checked_against_its_space_and_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path / "run", [numbered(0), numbered(1), numbered(2, topic="Gold")])
    assert call(run, "--json") == 3
    files = json.loads(capsys.readouterr().out)["files"]
    assert [Path(file["path"]).name for file in files] == [
        "conversations_eval.json",
        "conversations_train1.json",
        "conversations_train2.json",
    ]
    (problem,) = files[2]["problems"]
    assert (problem["kind"], problem["path"]) == ("vocabulary", "$.background_info.topic")

    shard = run / "shards" / "conversations_train2.json"
    shard.write_text(shard.read_text().replace("Gold", "Rust"))
    assert call(run, "--json") == 3
    problems = json.loads(capsys.readouterr().out)["files"][3]
    assert problems["path"] == str(run / "shards" / "manifest.json")
    assert [(p["record"], p["kind"]) for p in problems["problems"]] == [(None, "manifest")]
    assert "another sha256" in problems["problems"][0]["problem"]


def test_a_run_as_it_was_written_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path / "run", [numbered(i) for i in range(5)])
    assert call(run) == call(run / "shards") == 0
    assert "together: 5 records, 5 valid, 0 errors, 0 warnings" in capsys.readouterr().out


def test_what_the_manifest_does_not_list_is_told_and_blocks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path / "run", [numbered(i) for i in range(5)])
    write(run / "shards" / "conversations_train6.json", {})
    (run / "shards" / "notes.txt").write_text("mine")
    assert call(run, "--fix", tmp_path / "fixed") == 0
    told = capsys.readouterr().out
    assert "conversations_train6.json is in the folder, but is not listed" in told
    assert "notes.txt is in the folder, but is not listed" in told
    assert "together: 5 records, 5 valid, 0 errors, 2 warnings" in told
    assert not (tmp_path / "fixed" / "conversations_train6.json").exists()
    assert (run / "shards" / "conversations_train6.json").exists()


def test_a_run_without_its_space_is_checked_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path / "run", [numbered(0), numbered(1, topic="Gold")])
    space = run / "inputs" / "space.yaml"
    space.unlink()
    assert call(run, "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["valid"] == 2
    assert captured.err == f"{space} is missing, so the scenario strings are not checked against it.\n"


def test_paths_that_cannot_be_looked_at_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "data.json", GOOD)
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    long = tmp_path / ("x" * 300)
    for arguments in ((long,), (source, "--fix", long), (tmp_path, "--fix", circle / "x")):
        assert call(*arguments) == 2, arguments
        error = capsys.readouterr().err
        # Python 3.13 follows the circle as far as it leads: into the folder that is read.
        assert "cannot be" in error or "lies inside" in error
        assert "Traceback" not in error


def test_ids_are_compared_across_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a.json", GOOD)
    write(tmp_path / "b.json", GOOD)
    assert call(tmp_path / "a.json", tmp_path / "b.json") == 3
    assert "is also the id of record 0 of" in capsys.readouterr().out


def test_fix_writes_copies_that_are_valid_and_lists_the_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "data.json", BAD, GOOD, {"conversation": []}, 17)
    before = source.read_bytes()
    out = tmp_path / "fixed"
    assert call(source, "--fix", out, "--json") == 3
    fixed = json.loads(capsys.readouterr().out)["fixed"]
    assert (fixed["records"], fixed["changed"], fixed["left_out"]) == (2, 1, 2)
    assert source.read_bytes() == before

    written = (out / "data.json").read_text()
    records = json.loads(written)
    assert written == json.dumps(records, indent=4, ensure_ascii=False)
    assert records[1] == GOOD
    assert not records[0]["conversation"][1]["text"].endswith(",")
    changes = [json.loads(line) for line in (out / "changes.jsonl").read_text().splitlines()]
    assert [line["record"] for line in changes] == [0, 2, 3]
    assert changes[0]["before"] == changes[0]["after"] + '",'
    assert all(line["left_out"] for line in changes[1:])

    assert call(out / "data.json", "--fix", tmp_path / "again") == 0
    assert (tmp_path / "again" / "data.json").read_text() == written
    assert (tmp_path / "again" / "changes.jsonl").read_text() == ""


def test_fix_shows_nothing_in_a_folder_before_all_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [write(tmp_path / f"{name}.json", BAD) for name in "ab"]
    out = tmp_path / "mine"
    write(out / "other.json", GOOD)
    seen: list[list[str]] = []

    def full_disk(path: Path, lines: object) -> int:
        seen.append(sorted(one.name for one in out.iterdir() if not one.name.startswith(".")))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(validating, "write_lines", full_disk)
        assert call(*sources, "--fix", out) == 2
    assert seen == [["other.json"]]
    assert [one.name for one in out.iterdir()] == ["other.json"]
    assert call(*sources, "--fix", out) == 3
    assert sorted(one.name for one in out.iterdir()) == ["a.json", "b.json", "changes.jsonl", "other.json"]


def test_fix_never_writes_over_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "in" / "data.json", BAD)
    other = write(tmp_path / "other" / "data.json", BAD)
    taken = write(tmp_path / "taken" / "data.json", "mine")
    noted = tmp_path / "noted" / "changes.jsonl"
    noted.parent.mkdir()
    noted.write_text("mine")
    for arguments, says in [
        ((source, "--fix", taken.parent), "not overwritten"),
        ((source, "--fix", noted.parent), "not overwritten"),
        ((source, "--fix", source.parent), "not overwritten"),
        ((source, "--fix", source), "this is a file"),
        ((source.parent, "--fix", source.parent / "new"), "lies inside"),
        ((source.parent, "--fix", source.parent), "lies inside"),
        ((source, other, "--fix", tmp_path / "new"), "two files would be written"),
        ((source, "--fix", taken / "below"), "cannot be made"),
    ]:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert call(*arguments) == 2, arguments
        assert says in capsys.readouterr().err
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "new").exists()


def test_the_released_records_are_read_and_mended(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(shared_data / "ed_release_sample.json", "--fix", tmp_path / "fixed", "--json") == 3
    result = json.loads(capsys.readouterr().out)
    assert (result["records"], result["valid"]) == (19, 15)
    assert (result["fixed"]["records"], result["fixed"]["left_out"]) == (19, 0)
    assert call(tmp_path / "fixed" / "ed_release_sample.json", "--json") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["valid"] == 19
    assert {problem["kind"] for problem in file["problems"]} <= {"no_marker", "alternation"}


def test_nothing_heavy_is_imported_before_the_command_runs() -> None:
    code = (
        "import sys, edgen.cli.validate\n"
        "assert not {'jsonschema', 'jsonschema_rs', 'aiohttp', 'jinja2'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
