"""Output is harmless in a terminal, and JSON keeps the original values."""

from __future__ import annotations

import json
import os
import subprocess
import unicodedata
from pathlib import Path

import pytest

from edgen.cli.output import note, render_json, wrap_to_terminal
from edgen.core.text import escape_for_terminal, escape_json_for_terminal, replace_surrogates
from tests import fork_server

# ESC, CSI, DEL, bidirectional marks, overrides and isolates, separators, interlinear marks, a tag, a zero-width space.
HIDDEN = "\x00\x07\x0d\x1b\x7f\x80\x85\x9b\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ufeff\ufff9\ufffb\U000e0041"


def obeyed(text: str) -> set[str]:
    """Return the characters of a text that a terminal obeys or hides."""
    return {
        c
        for c in text
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t\u200c\u200d"
    }


@pytest.mark.parametrize("char", HIDDEN, ids=lambda char: f"U+{ord(char):04X}")
def test_what_a_terminal_would_obey_is_written_out(char: str) -> None:
    code = ord(char)
    written = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    assert escape_for_terminal(f"a{char}b") == f"a{written}b"
    assert obeyed(render_json({char: char})) == set()
    assert json.loads(render_json({char: char})) == {char: char}


def test_what_people_write_stays() -> None:
    for text in ("a\n\tb", "Été « oui »", "夏\u3000🌞", "می‌خواهم", "👩‍🏫", "±½", "e\u0301"):
        assert escape_for_terminal(text) == text
        assert escape_json_for_terminal(text) == text


def test_no_character_at_all_is_obeyed() -> None:
    text = "".join(map(chr, (*range(0x10000), *range(0x1F000, 0x1F0FF), *range(0xE0000, 0xE0200), 0x10FFFF)))
    assert obeyed(escape_for_terminal(text)) == set()
    whole = text[:0xD800] + text[0xE000:]
    value = {whole: [whole, {"a": whole}]}
    line = render_json(value)
    assert obeyed(line) == set()
    assert "\n" not in line
    assert json.loads(line) == value


def test_half_of_a_character_is_replaced() -> None:
    assert json.loads(render_json({"a\udcff": ["\ud800b"]})) == {"a\ufffd": ["\ufffdb"]}


def edgen(*words: str | bytes, folder: Path) -> subprocess.CompletedProcess[str]:
    return fork_server.run(*map(os.fsdecode, words), cwd=folder)


def test_files_with_hostile_names_and_texts_print_harmlessly(tmp_path: Path) -> None:
    """Each command runs in a process, as from a shell. Errors go to stderr."""
    evil = "t\x1b[31m\u202e\u009b"
    template = tmp_path / f"{evil}.j2"
    template.write_text("Talk about {{ topic }} \u009b31m \u202e.\n")
    job = tmp_path / f"{evil}.yaml"
    job.write_text(
        "name: x\nconversations: 1\nspace: education_dialogue\nbackends: {default: {type: simulator}}\n"
        'prompt: "./t\\e[31m\\u202e\\x9b.j2"\n'
    )
    for words, code in (
        (("preview", job.name, "-n", "1"), 0),
        (("parse", job.name, template.name), 2),
        (("generate", job.name, "--set", f"seed={evil}"), 2),
        (("runs", os.fsencode("no\udcff"), "--json"), 2),
    ):
        done = edgen(*words, folder=tmp_path)
        assert done.returncode == code, done.stderr
        assert done.stdout + done.stderr
        assert obeyed(done.stdout) == set(), words
        assert obeyed(done.stderr) == set(), words


def test_a_lone_surrogate_is_safe_in_json() -> None:
    """`json.dumps(…, ensure_ascii=False)` keeps a lone surrogate in the text, as does a reply cut in two."""
    for char in ("\ud800", "\udfff", "\udcff"):
        text = json.dumps({"a": f"x{char}"}, ensure_ascii=False)
        assert obeyed(escape_json_for_terminal(text)) == set()
        assert json.loads(escape_json_for_terminal(text)) == {"a": f"x{char}"}


def test_lone_surrogates_are_replaced_in_values() -> None:
    assert replace_surrogates({"\ud800": ["a\udfff", ("é",), 1, None]}) == {
        "\ufffd": ["a\ufffd", ["é"], 1, None]
    }


def test_a_note_breaks_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file, the note stays on its line."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    path = "/a/folder/of/runs/with-a-long-name/quickstart"
    text = f"edgen: {path}: name a conversation of it by its id or its scenario's number.\n  $.key: {'word ' * 9}end"
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 40))
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        note(text)
        shown = os.read(ours, 4096).decode().splitlines()
    os.close(ours)
    assert " ".join(" ".join(shown).split()) == " ".join(text.split())
    assert all(len(line) <= 40 or line.strip() == f"{path}:" for line in shown)
    assert [line for line in shown if line.startswith("  ")][1:] == ["  word word word end"]


def test_a_note_in_a_file_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    note("word " * 100 + "end")
    assert capsys.readouterr().err == "word " * 100 + "end\n"


def test_a_text_after_its_label_stays_below_itself_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    assert wrap_to_terminal("ok    ", "word " * 20) == "ok    " + "word " * 20
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 40))
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        folded = wrap_to_terminal("ok    ", "word " * 10 + "end").split("\n")
        short = wrap_to_terminal("ok    ", "word")
    os.close(ours)
    assert folded == ["ok    word word word word word word word", "      word word word end"]
    assert short == "ok    word"
