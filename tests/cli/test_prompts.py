"""`edgen prompts`: the available templates, and the variables that each expects."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from edgen.core import resources
from tests.cli.command import Command

MINE = (
    "{#\n---\nname: Mine\nversion: '2'\nlicence: CC0-1.0\nexpects: conversation\n---\n#}\nAbout {{ topic }}"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entries(command: Command, *arguments: str) -> dict[str, dict[str, Any]]:
    ended = command("prompts", *arguments, "--json")
    assert ended.code == 0, ended.err
    return {entry["name"]: entry for entry in json.loads(ended.out)["templates"]}


def test_every_shipped_template_is_listed_with_what_it_expects(command: Command, here: Path) -> None:
    found = entries(command)
    assert list(found) == resources.list_shipped("prompts")
    assert all(entry["shipped"] and entry["error"] is None for entry in found.values())
    published = found["education_dialogue"]
    assert published["expects"] == "conversation"
    assert "arXiv 2405.14655" in published["source"]
    assert published["uses"][0] == "topic"
    text = resources.find("prompts", "education_dialogue").read_bytes()
    assert published["sha256"] == hashlib.sha256(text).hexdigest()
    assert found["oracle_conversation"]["uses"] == ["conversation_1", "conversation_2"]


def test_local_ones_are_found_here_in_prompts_and_where_they_are_named(command: Command, here: Path) -> None:
    for folder in ("prompts", "other", "third"):
        (here / folder).mkdir()
        (here / folder / f"{folder}.j2").write_text(MINE)
    (here / "mine.j2").write_text(MINE)
    (here / "plain.j2").write_text("Only {{ topic }}")
    found = entries(command, "other", "third/third.j2", "mine.j2")
    local = [name for name, entry in found.items() if not entry["shipped"]]
    assert local == [
        "./mine.j2",
        "./plain.j2",
        "./prompts/prompts.j2",
        "./other/other.j2",
        "./third/third.j2",
    ]
    mine, plain = found["./mine.j2"], found["./plain.j2"]
    assert (mine["title"], mine["version"], mine["licence"], mine["uses"]) == (
        "Mine",
        "2",
        "CC0-1.0",
        ["topic"],
    )
    assert (plain["title"], plain["expects"], plain["error"]) == (None, None, None)


def test_one_that_is_named_twice_is_listed_once(command: Command, here: Path) -> None:
    (here / "other").mkdir()
    (here / "other" / "one.j2").write_text(MINE)
    ended = command("prompts", "other", "other/one.j2", "other", resources.find_folder("prompts"), "--json")
    names = [entry["name"] for entry in json.loads(ended.out)["templates"]]
    assert names == [*resources.list_shipped("prompts"), "./other/one.j2"]


def test_front_matter_that_is_not_at_the_top_is_pointed_out(command: Command, here: Path) -> None:
    (here / "late.j2").write_text("{# Ours. #}\n" + MINE)
    (here / "good.j2").write_text("\n" + MINE + "{#----- a banner -----#}")
    found = entries(command)
    assert "the comment in line 2 looks like front matter and is not read" in found["./late.j2"]["remark"]
    assert found["./late.j2"]["title"] is None
    assert all(entry["remark"] is None for name, entry in found.items() if name != "./late.j2")
    assert "REMARK   the comment in line 2 looks like front matter" in command("prompts").out


def test_one_that_expects_nothing_says_so_in_words(command: Command, here: Path) -> None:
    (here / "plain.j2").write_text("Only {{ topic }}")
    out = command("prompts").out
    assert "./plain.j2  (no version, expects not stated, " in out
    assert "?" not in out


def test_one_with_an_error_is_listed_with_it(command: Command, here: Path) -> None:
    (here / "broken.j2").write_text("{{ topik }}")
    (here / "front.j2").write_text("{#\n---\nexpects: verdict\nlicens: x\n---\n#}\n{{ topic }}")
    (here / "used.j2").write_text("{#\n---\nexpects: values\n---\n#}\n{{ topic }}")
    (here / "bytes.j2").write_bytes(b"\xff\x1b[31m")
    (here / "folder.j2").mkdir()
    found = entries(command)
    assert "line 1: there is no variable 'topik' (did you mean 'topic'?)" in found["./broken.j2"]["error"]
    assert "line 4: licens: unknown key (did you mean 'licence'?)" in found["./front.j2"]["error"]
    assert "line 6: there is no variable 'topic'" in found["./used.j2"]["error"]
    assert "not UTF-8" in found["./bytes.j2"]["error"]
    assert "this is a folder" in found["./folder.j2"]["error"]
    shown = command("prompts").out
    assert shown.count("ERROR") == 5


def test_it_reads_well_in_eighty_columns_and_shows_no_control_characters(
    command: Command, here: Path
) -> None:
    (here / "odd.j2").write_text('{#\n---\nname: "a\\e[31m\\u202Eb"\nnotes: |\n  one\n  two\n---\n#}\nHello')
    out = command("prompts").out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "  education_dialogue  (1.0, expects conversation, " in out
    assert "licence  not stated" in out
    assert "verdict       1 or 2: which of two" in out


def test_a_path_that_is_not_there(command: Command, here: Path) -> None:
    ended = command("prompts", "none")
    assert ended.code == 2
    assert "none: there is no such file or folder." in ended.err
