"""`edgen show`: a conversation with everything its run knows of it, for every outcome."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from edgen.cli.transcript import join_blocks, wrap_text
from tests import ROOT
from tests.cli.command import Command
from tests.layers import put_layer

JOB = """\
name: shown
seed: 5
conversations: 12
space: education_dialogue
prompt: education_dialogue
asks: 1
backends: {default: {type: simulator, faults: "refusal=0.4"}}
"""
ARMED = (
    JOB.replace(', faults: "refusal=0.4"', "")
    + "arms:\n  plain: {}\n  json: {prompt: education_dialogue_json}\n"
)
PLAYED = """\
name: played
seed: 5
conversations: 2
replicates: 2
space: education_dialogue
protocol: selfplay
branch: {at: sampled}
backends: {default: {type: simulator}}
"""
HOSTILE = (
    'Conversation:\n[\nTeacher: "Hi.\\u202e \x1b]0;owned\x07\x1b[2J \x9b31m",\nStudent: "Fine.\nTeacher  I am no turn.'
    ' [end of conversation]"\n]\nProbability: 0.5'
)


def made(job: str, tmp_path: Path, command: Command, code: int = 0) -> Path:
    (tmp_path / "job.yaml").write_text(job)
    ended = command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run")
    assert ended.code == code, ended.err
    return tmp_path / "run"


def test_an_accepted_one_and_a_rejected_one(tmp_path: Path, command: Command) -> None:
    run = made(JOB, tmp_path, command, 3)
    lines = map(json.loads, (run / "rejected.jsonl").read_text().splitlines())
    rejected = next(one for one in lines if one["reply"])
    record = json.loads((run / "shards" / "conversations_train1.json").read_text())[0]

    ended = command("show", run, record["id"])
    assert ended.code == 0
    shown = " ".join(ended.out.split())
    assert shown.startswith(f"{record['id']} · accepted · simulated")
    for text in (
        *record["background_info"].values(),
        *(turn["text"] for turn in record["conversation"][:-1]),
    ):
        assert " ".join(text.split()) in shown
    assert f"probability {record['probability']:g}" in shown
    assert "│" not in shown
    assert "│ Conversation:" in command("show", run, record["id"], "--raw").out

    ended = command("show", run, rejected["id"])
    assert ended.out.startswith(f"{rejected['id']} · rejected\n  {rejected['reason']}: ")
    replied = " ".join(
        line.removeprefix("  │ ") for line in ended.out.splitlines() if line.startswith("  │ ")
    )
    assert " ".join(replied.split()) == " ".join(rejected["reply"].split())


def test_what_machines_read(tmp_path: Path, command: Command) -> None:
    run = made(JOB, tmp_path, command, 3)
    record = json.loads((run / "shards" / "conversations_train1.json").read_text())[0]
    number = record["provenance"]["scenario"]
    plain = json.loads(command("show", run, str(number), "--json").out)
    (one,) = plain["conversations"]
    assert (one["id"], one["status"], one["scenario"]["index"]) == (record["id"], "accepted", number)
    assert one["scenario"]["topic"] == record["background_info"]["topic"]
    assert len(one["turns"]) == len(record["conversation"])
    assert one["provenance"] == record["provenance"]
    assert "replies" not in one
    (raw,) = json.loads(command("show", run, str(number), "--json", "--raw").out)["conversations"]
    assert raw["replies"][0]["reply"]["text"].startswith("Conversation:")


def test_arms_stand_beside_each_other_where_there_is_room(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(ARMED, tmp_path, command)
    monkeypatch.setenv("COLUMNS", "120")
    wide = command("show", run, "3").out
    heads = [line.split() for line in wide.splitlines() if line.startswith("shown.plain-000003-r0")]
    assert [[word for word in line if word.startswith("shown.")] for line in heads] == [
        ["shown.plain-000003-r0", "shown.json-000003-r0"]
    ]
    assert wide.count("teacher prefers") == 1  # common to both conversations
    assert max(map(len, wide.splitlines())) <= 120
    monkeypatch.setenv("COLUMNS", "80")
    narrow = command("show", run, "3").out.splitlines()
    assert narrow[0].startswith("shown.plain-000003-r0 ")
    assert any(line.startswith("shown.json-000003-r0 ") for line in narrow)
    assert max(map(len, narrow)) <= 80
    alone = command("show", run, "shown.json-000003-r0").out
    assert "shown.plain" not in alone


def test_self_play_with_its_pairs(tmp_path: Path, command: Command) -> None:
    run = made(PLAYED, tmp_path, command)
    assert command("pairs", run, "--by", "oracle").code == 0
    pair = json.loads((run / "pairs" / "pairs.jsonl").read_text().splitlines()[0])
    shown = command("show", run, pair["b"]["id"]).out
    assert "left replicate 0 at turn" in shown
    assert "teacher edgen-simulator" in " ".join(shown.split())
    told = " ".join(shown.partition("\npairs\n")[2].split())
    assert told.startswith(f"{pair['a']['id']} and {pair['b']['id']}: ")
    assert "judge edgen-simulator" in told
    assert f"(ab {pair['a']['id']}" in told or f"(ab {pair['b']['id']}" in told or "(ab unread" in told
    both = json.loads(command("show", run, str(pair["scenario"]), "--json").out)
    assert len(both["conversations"]) == 2
    assert [one["id"] for one in both["pairs"]] == [pair["id"]]


def test_what_is_not_settled_is_pending(tmp_path: Path, command: Command) -> None:
    run = made(JOB.replace("refusal=0.4", "refusal=0"), tmp_path, command)
    with sqlite3.connect(run / "run.db") as ledger:
        ledger.execute(
            "DELETE FROM outcomes WHERE (scenario, task) = (SELECT MAX(scenario), task FROM outcomes)"
        )
    assert command("show", run, "11").out.startswith("shown-000011-r0 · pending\n")


@pytest.mark.parametrize(
    ("named", "near"),
    [
        ("shwon-000003-r0", "shown-000003-r0"),
        ("shown-3", "shown-000003-r0"),
        ("shown-000003-r7", "shown-000003-r0"),
        ("shown-000099-r0", "shown-000011-r0"),
        ("99", "shown-000011-r0"),
        ("what", "shown-000000-r0"),
        ("", "shown-000000-r0"),
        ("9" * 40, "shown-0000"),
        ("-1", "shown-000001-r0"),
    ],
)
def test_what_the_run_does_not_have(named: str, near: str, tmp_path: Path, command: Command) -> None:
    run = made(JOB.replace("refusal=0.4", "refusal=0"), tmp_path, command)
    ended = command("show", run, "--", named)
    assert ended.code == 2
    assert f"did you mean {near}" in ended.err
    assert "from 0 to 11" in ended.err
    assert ended.out == ""


def test_no_run(tmp_path: Path, command: Command) -> None:
    ended = command("show", tmp_path, "3")
    assert (ended.code, "there is no run here" in ended.err) == (2, True)


@pytest.fixture
def hostile() -> Iterator[str]:
    """Run a service whose model writes terminal escape codes; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer = {
                "model": "m\x1b[31m",
                "choices": [{"message": {"role": "assistant", "content": HOSTILE}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 9},
            }
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_hostile_words_reach_no_terminal(hostile: str, tmp_path: Path, command: Command) -> None:
    backend = f"{{type: openai, model: m, base_url: '{hostile}'}}"
    job = JOB.replace('{type: simulator, faults: "refusal=0.4"}', backend).replace(": 12", ": 1")
    run = made(job, tmp_path, command)
    for options in ((), ("--raw",)):
        shown = command("show", run, "0", *options).out
        assert "owned" in shown
        assert not any(char in shown for char in "\x1b\x07\x9b\u202e\r")
        # a line within a turn does not look like a turn
        assert "I am no turn." in shown
        assert not any(line.startswith("Teacher  I am no turn") for line in shown.splitlines())


def test_columns_are_as_wide_as_a_terminal_shows_them() -> None:
    lines = list(wrap_text("水" * 10 + " and words", 12, first="T ", rest="  "))
    assert lines == ["T 水水水水水", "  水水水水水", "  and words"]
    assert list(join_blocks([["水", "b"], ["c"]], 4)) == ["水     c", "b"]
    assert list(wrap_text("", 20)) == [""]
    assert list(wrap_text("  x = 1\n\n    y", 20)) == ["  x = 1", "", "    y"]


def test_a_conversation_of_any_space_is_shown_with_every_dimension(command: Command, tmp_path: Path) -> None:
    job = ROOT / "jobs" / "math_misconceptions.yaml"
    made = command("generate", job, "-n", "2", "-o", tmp_path / "run", "--show", "1")
    assert made.code == 0, made.err
    assert "  topic: " in made.out
    assert "(grade: " in made.out
    assert "Tutor: " in made.out
    shown = command("show", tmp_path / "run", "0")
    assert shown.code == 0, shown.err
    for name in ("topic", "topic.grade", "misconception", "learner", "tutor move"):
        assert f"\n  {name} " in shown.out


def test_labels_stand_beside_what_they_are_of(tmp_path: Path, command: Command) -> None:
    run = made(ARMED, tmp_path, command)
    first = put_layer(run, "moves", lambda one, turn: ["Telling\x1b[2J"] if turn == 1 else None)
    put_layer(run, "quality", lambda one, _: ["4"], whole=True, annotators=["a", "b"])
    lines = first.with_name("labels.jsonl").read_text().splitlines()
    units = [json.loads(line) for line in lines]
    at = next(number for number, unit in enumerate(units) if unit["id"] == "shown.json-000003-r0")
    units[at] |= {"labels": [], "tie": True, "annotators": {"a": ["Telling"], "b": ["Focus"]}}
    first.write_text("".join(json.dumps(unit) + "\n" for unit in units))

    ended = command("show", run, "shown.plain-000003-r0")
    shown = ended.out.splitlines()
    assert ended.code == 0
    assert sum("[moves: Telling" in line for line in shown) == 1
    assert "\x1b" not in ended.out
    assert "[quality: 4]" in shown
    ended = command("show", run, "shown.json-000003-r0")
    assert "[moves: no label has most (a Telling; b Focus)]" in " ".join(ended.out.split())
    (facts,) = json.loads(command("show", run, "shown.json-000003-r0", "--json").out)["conversations"]
    assert facts["labels"]["moves"] == [units[at]]

    first.write_bytes(b"{}\n")
    ended = command("show", run, "3")
    assert ended.code == 0
    assert "Its labels cannot be read" in ended.err
