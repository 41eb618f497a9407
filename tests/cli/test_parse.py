"""`edgen parse`, called through a separate command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from edgen.cli.app import app
from edgen.core.errors import DataError, UsageError
from edgen.core.yaml_values import MAX_BYTES

REPLY = 'Conversation:\n[\n   Teacher:  "What is a cell?",\n   Student:  "A tiny room?",\n]\nProbability:  "0.2",\n'
ANSWER = {
    "status": "ok",
    "turns": [{"role": "Teacher", "text": "What is a cell?"}, {"role": "Student", "text": "A tiny room?"}],
    "probability": 0.2,
    "ended_by": None,
    "repairs": [],
}


def run(*words: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["parse", *map(str, words)], input=stdin)


def file_of(folder: Path, data: str | bytes) -> Path:
    path = folder / "reply.txt"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def answers(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_reply_in_a_file_is_answered_with_one_object(tmp_path: Path) -> None:
    result = run(file_of(tmp_path, REPLY))
    assert (result.exit_code, json.loads(result.stdout)) == (0, ANSWER)


def test_a_dash_reads_standard_input() -> None:
    assert json.loads(run("-", stdin=REPLY).stdout) == ANSWER


def test_a_byte_order_mark_is_no_part_of_the_reply(tmp_path: Path) -> None:
    assert json.loads(run(file_of(tmp_path, b"\xef\xbb\xbf" + REPLY.encode())).stdout) == ANSWER


def test_what_is_no_conversation_is_answered_and_exits_with_3(tmp_path: Path) -> None:
    result = run(file_of(tmp_path, "I'm sorry, but I can't help with that."))
    assert result.exit_code == 3
    answer = json.loads(result.stdout)
    assert (answer["status"], answer["reason"]) == ("rejected", "refused")
    assert "declined" in answer["detail"]


def test_an_empty_file_is_an_empty_reply(tmp_path: Path) -> None:
    result = run(file_of(tmp_path, ""))
    assert (result.exit_code, json.loads(result.stdout)["reason"]) == (3, "empty")


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    result = run(file_of(tmp_path, "Teacher: \x1b[31mred\nStudent: ok"))
    assert "\x1b" not in result.stdout
    assert json.loads(result.stdout)["turns"][0]["text"] == "\x1b[31mred"


def refused(result: Result) -> str:
    """Return the top level's message for the error that the command raised."""
    assert isinstance(result.exception, DataError)
    assert result.exception.exit_code == 2
    return str(result.exception)


@pytest.mark.parametrize("option", [[], ["--jsonl"]])
def test_a_missing_file_and_a_folder_are_said_to_be(tmp_path: Path, option: list[str]) -> None:
    missing = tmp_path / "none.txt"
    assert refused(run(missing, *option)) == f"data {missing}: there is no such file."
    assert "this is a folder" in refused(run(tmp_path, *option))


def test_bytes_that_are_no_text_are_said_to_be(tmp_path: Path) -> None:
    assert "byte 1 is not UTF-8" in refused(run(file_of(tmp_path, b"a\xff")))
    assert refused(run("-", stdin=b"a\xff")).startswith("data standard input: byte 1")


def test_what_is_too_large_is_said_to_be(tmp_path: Path) -> None:
    large = "a" * (MAX_BYTES + 1)
    assert "larger than 8 MiB" in refused(run(file_of(tmp_path, large)))
    assert "larger than 8 MiB" in refused(run("-", stdin=large))


def test_every_line_is_answered_in_its_place(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": "a", "reply": REPLY, "model": "other keys are not looked at"}),
        json.dumps({"id": 7, "reply": "Hello."}),
        json.dumps({"reply": REPLY, "finish_reason": "length"}),
        json.dumps({"id": "d", "reply": "", "refusal": "no"}),
        json.dumps({"id": "e", "reply": REPLY, "finish_reason": None, "refusal": None}),
    ]
    result = run(file_of(tmp_path, "\n".join(lines)), "--jsonl")
    assert result.exit_code == 3
    given = answers(result)
    assert given[0] == {"id": "a", **ANSWER}
    assert [(g["id"], g["status"], g.get("reason")) for g in given[1:]] == [
        (7, "rejected", "no_turns"),
        (None, "rejected", "truncated"),
        ("d", "rejected", "refused"),
        ("e", "ok", None),
    ]
    assert ": " not in result.stdout.splitlines()[0].replace("Teacher: ", "")


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("LENGTH", "truncated"),
        ("max_tokens", "truncated"),
        ("MAX_TOKENS", "truncated"),
        ("SAFETY", "refused"),
        ("STOP", None),
        ("something_new", None),
    ],
)
def test_a_finish_reason_is_understood_in_any_service_s_word(word: str, reason: str | None) -> None:
    line = json.dumps({"id": "a", "reply": REPLY, "finish_reason": word})
    assert answers(run("-", "--jsonl", stdin=line))[0].get("reason") == reason


def test_half_a_surrogate_pair_and_nan_are_no_fault_of_the_reply() -> None:
    half = '{"id": "a\\ud83d", "reply": "Teacher: a\\ud83d\\nStudent: b"}'
    not_a_number = json.dumps({"id": "b", "reply": REPLY, "logprob": float("nan")})
    first, second = answers(run("-", "--jsonl", stdin=f"{half}\n{not_a_number}\n"))
    assert (first["id"], first["turns"][0]["text"]) == ("a\ufffd", "a\ufffd")
    assert "bad_characters" in first["repairs"]
    assert second == {"id": "b", **ANSWER}


def test_lines_that_can_all_be_read_exit_with_0() -> None:
    result = run("-", "--jsonl", stdin=json.dumps({"id": "a", "reply": REPLY}) + "\r\n")
    assert (result.exit_code, answers(result)) == (0, [{"id": "a", **ANSWER}])


def test_no_lines_are_no_answers(tmp_path: Path) -> None:
    result = run(file_of(tmp_path, ""), "--jsonl")
    assert (result.exit_code, result.stdout) == (0, "")


BAD = {
    "no JSON": (b"hello", None),
    "cut off": (b'{"id": "a", "reply": "x', None),
    "a blank line": (b"", None),
    "a list": (b'["a"]', None),
    "no reply": (b'{"id": "a"}', "a"),
    "a reply that is no text": (b'{"id": "a", "reply": 5}', "a"),
    "an id that is no name": (b'{"id": [1], "reply": "x"}', None),
    "no UTF-8": (b'{"id": "a", "reply": "\xff"}', None),
    "too deep": (b"[" * 100_000, None),
    "too long": (b'{"id": "a", "reply": "' + b"x" * MAX_BYTES + b'"}', None),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_answered_and_the_rest_goes_on(tmp_path: Path, name: str) -> None:
    line, id_ = BAD[name]
    good = json.dumps({"id": "good", "reply": REPLY}).encode()
    result = run(file_of(tmp_path, b"\n".join([good, line, good, b""])), "--jsonl")
    assert result.exit_code == 3
    first, bad, last = answers(result)
    assert first == last == {"id": "good", **ANSWER}
    assert (bad["id"], bad["status"], bad["reason"]) == (id_, "rejected", "bad_line")
    assert 10 < len(bad["detail"]) < 300


def test_help_shows_an_example() -> None:
    assert "edgen validate --replies --jsonl replies.jsonl" in run("--help").stdout


def test_one_bad_line_is_answered_and_the_rest_goes_on(tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": 1, "reply": REPLY, "\ud800": 1}),
        json.dumps({"id": "a\ud800", "\udc00": REPLY}),
        json.dumps({"\ud800": {"\ud800": "\ud800"}}),
        json.dumps({"id": 10**30, "reply": REPLY}),
        '{"id": ' + "9" * 5000 + ', "reply": "x"}',
        json.dumps(["\ud800"]),
        json.dumps({"id": 7, "reply": REPLY, "finish_reason": "\ud800"}),
        json.dumps({"id": 8, "reply": "Teacher: \ud800\u009b a?\nStudent: b\u202e.\n"}),
        json.dumps({"id": 9, "reply": REPLY}),
    ]
    result = run("--jsonl", file_of(tmp_path, "\n".join(lines)))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    found = answers(result)
    assert [answer.get("reason", answer["status"]) for answer in found] == [
        "ok", "bad_line", "bad_line", "ok", "bad_line", "bad_line", "ok", "ok", "ok",
    ]  # fmt: skip
    assert [answer["id"] for answer in found] == [1, "a\ufffd", None, str(10**30), None, None, 7, 8, 9]
    assert "\u009b" not in result.stdout
    assert "\u202e" not in result.stdout
    assert found[7]["turns"][1]["text"] == "b\u202e."


def test_words_of_other_languages_are_known_and_ones_own_are_given(tmp_path: Path) -> None:
    abroad = run(file_of(tmp_path, "Lehrer: Was ist das?\nSchüler: Ein Raum?\n"))
    assert [turn["role"] for turn in json.loads(abroad.stdout)["turns"]] == ["Teacher", "Student"]
    text = "Ms. Rivera: What is a cell?\nKim: A tiny room?\n"
    assert run(file_of(tmp_path, text)).exit_code == 3
    words = ("--role", "Teacher=Ms. Rivera", "--role", "student=Kim")
    result = run(file_of(tmp_path, text), *words)
    assert json.loads(result.stdout)["turns"] == [
        {"role": "Teacher", "text": "What is a cell?"},
        {"role": "Student", "text": "A tiny room?"},
    ]
    line = json.dumps({"id": 1, "reply": text})
    assert answers(run("-", "--jsonl", *words, stdin=line))[0]["status"] == "ok"


@pytest.mark.parametrize("given", ["Tutor", "Pupil=Kim", "Teacher=", "Teacher=student", "Teacher=a: b"])
def test_a_role_option_that_names_nobody_is_refused(tmp_path: Path, given: str) -> None:
    result = run(file_of(tmp_path, REPLY), "--role", given)
    assert isinstance(result.exception, UsageError)
    assert "--role" in str(result.exception)
