"""Templates with a JSON Schema, from the command line: generated, resumed, shown, refused, diagnosed."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from edgen.core.errors import JobError
from edgen.core.resources import find
from edgen.planning.load import check_schemas, load_plan
from edgen.prompting.front_matter import read_front
from edgen.protocols.oneshot import Oneshot
from tests.cli.command import Command
from tests.providers.schema_server import SchemaServer, serving_schemas
from tests.providers.test_answer_schemas import SENT, configs

SHIPPED = find("prompts", "education_dialogue_schema")
SCHEMA = json.loads(SHIPPED.with_name("education_dialogue_schema.schema.json").read_text())


@pytest.fixture
def server() -> Iterator[SchemaServer]:
    with serving_schemas() as running:
        yield running


def job_in(folder: Path, **more: Any) -> Path:
    """Write a job next to a copy of the shipped template that has a schema."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (SHIPPED, SHIPPED.with_name("education_dialogue_schema.schema.json")):
        shutil.copy(path, folder / path.name.replace("education_dialogue_schema", "mine"))
    values = {
        "name": "s",
        "seed": 7,
        "conversations": 12,
        "space": "education_dialogue",
        "prompt": "./mine.j2",
        "backends": {"default": {"type": "simulator"}},
        "shards": {"train": 1, "test": 1},
        **more,
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(values))
    return folder / "job.yaml"


def rows(run: Path, what: str) -> list[Any]:
    with sqlite3.connect(run / "run.db") as base:
        return base.execute(what).fetchall()


def conversations(run: Path) -> list[Any]:
    return [
        record["conversation"]
        for path in sorted((run / "shards").glob("conversations*"))
        for record in json.loads(path.read_text())
    ]


def test_the_simulator_answers_by_the_schema_and_a_second_start_asks_nothing(
    command: Command, tmp_path: Path
) -> None:
    job, run = job_in(tmp_path), tmp_path / "run"
    assert command("generate", job, "-o", run, "-n", "5").code == 0
    assert command("generate", job, "-o", run, "--json").code == 0
    ended = json.loads(command("generate", job, "-o", run, "--json").out)
    assert (ended["accepted"], ended["calls"]["made"]) == (12, 12)
    for record in conversations(run):
        assert {turn["role"] for turn in record} == {"Teacher", "Student"}
    whole = tmp_path / "whole"
    assert command("generate", job, "-o", whole).code == 0
    assert conversations(run) == conversations(whole)


def test_a_schema_that_the_template_does_not_describe_is_obeyed_as_well(
    command: Command, tmp_path: Path
) -> None:
    job, run = job_in(tmp_path, conversations=2), tmp_path / "run"
    changed = json.loads(json.dumps(SCHEMA))
    changed["properties"]["hours"] = {"type": "integer"}
    changed["required"].append("hours")
    (tmp_path / "mine.schema.json").write_text(json.dumps(changed))
    command("generate", job, "-o", run)
    replies = rows(run, "SELECT text FROM replies")
    assert len(replies) >= 2
    for (text,) in replies:
        jsonschema.validate(json.loads(text), changed)


@pytest.mark.parametrize("change", ["another schema", "no schema"])
def test_a_change_of_the_schema_asks_again_and_keeps_the_rest(
    command: Command, tmp_path: Path, change: str
) -> None:
    job, run, beside = job_in(tmp_path), tmp_path / "run", tmp_path / "mine.schema.json"
    assert command("generate", job, "-o", run).code == 0
    before = beside.read_text()
    if change == "no schema":
        beside.unlink()
    else:
        beside.write_text(json.dumps({**SCHEMA, "title": "A lesson"}))
    ended = json.loads(command("generate", job, "-o", run, "--json", "--yes").out)
    assert ended["calls"]["made"] == 24
    assert (run / "inputs" / "mine.schema.json").exists() == (change == "another schema")
    beside.write_text(json.dumps(json.loads(before)))  # the same schema with other white space
    ended = json.loads(command("generate", job, "-o", run, "--json", "--yes").out)
    assert ended["calls"]["made"] == 24


def test_a_run_keeps_the_schema_and_can_be_made_again_from_itself(command: Command, tmp_path: Path) -> None:
    job, run, again = job_in(tmp_path), tmp_path / "run", tmp_path / "again"
    assert command("generate", job, "-o", run).code == 0
    assert json.loads((run / "inputs" / "mine.schema.json").read_text()) == {
        key: value for key, value in SCHEMA.items() if key != "$schema"
    }
    assert command("generate", run / "job.yaml", "-o", again).code == 0
    keys = [rows(one, "SELECT hex(key) FROM replies ORDER BY 1") for one in (run, again)]
    assert keys[0] == keys[1]
    (run / "inputs" / "mine.schema.json").unlink()
    ended = json.loads(command("generate", job, "-o", run, "--json").out)
    assert ended["calls"]["made"] == 12
    assert (run / "inputs" / "mine.schema.json").exists()


def test_keys_without_a_schema_are_those_of_the_same_template_that_never_had_one(
    command: Command, tmp_path: Path
) -> None:
    job, run, plain = job_in(tmp_path), tmp_path / "run", tmp_path / "plain"
    (tmp_path / "mine.schema.json").unlink()
    named = "prompt=education_dialogue_json"
    assert command("generate", job, "-o", run).code == 0
    assert command("generate", job, "-o", plain, "--set", named).code == 0
    keys = [rows(one, "SELECT hex(key) FROM replies ORDER BY 1") for one in (run, plain)]
    assert keys[0] == keys[1]


def test_arms_with_the_same_text_and_another_schema_are_kept_apart(command: Command, tmp_path: Path) -> None:
    job_in(tmp_path / "b")
    (tmp_path / "b" / "mine.schema.json").unlink()
    arms = {"with": {"prompt": "./mine.j2"}, "without": {"prompt": "./b/mine.j2"}}
    job, run = job_in(tmp_path, arms=arms), tmp_path / "run"
    assert command("generate", job, "-o", run).code == 0
    assert sorted(path.name for path in (run / "inputs").iterdir()) == [
        "mine-2.j2",
        "mine.j2",
        "mine.schema.json",
        "space.yaml",
    ]
    assert command("generate", run / "job.yaml", "-o", tmp_path / "again").code == 0
    assert command("compare", run).code == 0
    assert command("report", run).code == 0


def test_pieces_that_are_merged_keep_the_schema(command: Command, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    for part, name in (("0:6", "one"), ("6:12", "two")):
        ended = command("generate", job, "--range", part, "-o", tmp_path / name)
        assert ended.code == 0, ended.err
    ended = command("merge", tmp_path / "one", tmp_path / "two", "-o", tmp_path / "whole")
    assert ended.code == 0, ended.err
    assert (tmp_path / "whole" / "inputs" / "mine.schema.json").is_file()
    ended = command("generate", job, "-o", tmp_path / "whole", "--json")
    assert json.loads(ended.out)["calls"]["made"] == 12


def test_self_play_sends_each_sides_own_schema(command: Command, tmp_path: Path) -> None:
    turn = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    for side in ("teacher", "student"):
        shutil.copy(find("prompts", f"selfplay_{side}"), tmp_path / f"{side}.j2")
    (tmp_path / "teacher.schema.json").write_text(json.dumps(turn))
    prompts = {"teacher": "./teacher.j2", "student": "./student.j2"}
    job, run = job_in(tmp_path, protocol="selfplay", prompts=prompts, conversations=2), tmp_path / "run"
    text = yaml.safe_load(job.read_text())
    del text["prompt"]
    job.write_text(yaml.safe_dump(text))
    shown = command("preview", job, "-n", "1")
    assert "--- teacher: schema" in shown.out
    assert "--- student: schema" not in shown.out
    ended = command("generate", job, "-o", run)
    assert ended.code == 0, ended.err
    assert (run / "inputs" / "teacher.schema.json").is_file()


VERDICT = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["1", "2"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


def test_a_judge_is_sent_its_own_and_is_another_judge_with_it(command: Command, tmp_path: Path) -> None:
    job, run = job_in(tmp_path, replicates=2, conversations=3), tmp_path / "run"
    assert command("generate", job, "-o", run).code == 0
    shutil.copy(find("prompts", "oracle_conversation"), tmp_path / "judge.j2")
    asked = ("pairs", run, "--by", "oracle", "--prompt", tmp_path / "judge.j2")
    assert command(*asked).code == 0
    (tmp_path / "judge.schema.json").write_text(json.dumps(VERDICT))
    ended = command(*asked)
    assert ended.code == 0, ended.err
    judges = {path: json.loads(path.read_text()) for path in (run / "pairs" / "judged").glob("*.json")}
    assert len(judges) == 2
    (judge,) = [path for path, facts in judges.items() if "schema" in facts["template"]]
    with sqlite3.connect(judge.with_suffix(".db")) as base:
        replies = [json.loads(text) for (text,) in base.execute("SELECT text FROM replies")]
    assert len(replies) == 6
    assert all(reply["answer"] in ("1", "2") for reply in replies)
    refused = {"type": "google-generativeai", "model": "m", "api_key_env": "NO_KEY"}
    ended = command(*asked, "--set", f"backends.judge={json.dumps(refused)}")
    assert (ended.code, "the SDK takes none" in ended.err) == (2, True)


def test_new_values_of_a_space_are_asked_for_by_a_schema(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(find("prompts", "space_expand"), tmp_path / "more.j2")
    listed = {"type": "object", "properties": {"values": {"type": "array", "items": {"type": "string"}}}}
    (tmp_path / "more.schema.json").write_text(json.dumps({**listed, "required": ["values"]}))
    options = ("--dimension", "topics", "--count", "2", "--prompt", "more.j2", "-o", "new.yaml")
    ended = command("space", "expand", "education_dialogue", *options)
    assert "Traceback" not in ended.err
    with sqlite3.connect(tmp_path / "new.yaml.db") as base:
        replies = [json.loads(text) for (text,) in base.execute("SELECT text FROM replies")]
    assert replies
    assert all(isinstance(reply["values"], list) for reply in replies)


def test_a_protocol_that_sends_none_is_refused(command: Command, tmp_path: Path) -> None:
    job = job_in(tmp_path)

    class Deaf(Oneshot):
        sends_schemas = False

    plan = load_plan(job)
    with pytest.raises(JobError, match="the protocol oneshot sends none"):
        check_schemas(plan.job, plan.prompts, plan.templates, Deaf())


# --- shown schemas -------------------------------------------------------------------------------


def test_prompts_and_preview_show_that_there_is_a_schema(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    listed = {one["name"]: one for one in json.loads(command("prompts", "--json").out)["templates"]}
    assert listed["./mine.j2"]["schema"] == "mine.schema.json"
    assert "schema" not in listed["education_dialogue_json"]
    assert "schema   mine.schema.json" in command("prompts").out
    shown = command("preview", job, "-n", "1")
    assert '--- schema\n{"type":"object","properties":{"conversation":' in shown.out
    (one,) = json.loads(command("preview", job, "-n", "1", "--json").out)["previews"]
    assert one["schemas"]["default"]["required"] == ["conversation", "probability"]
    plain = json.loads(
        command("preview", job, "-n", "1", "--json", "--set", "prompt=education_dialogue_json").out
    )
    assert "schemas" not in plain["previews"][0]
    difference = command("preview", job, "-n", "1", "--diff", "education_dialogue_json", "--json")
    assert "[schema]" in json.loads(difference.out)["differences"][0]["prompts"]["default"]["diff"]


def test_the_shipped_copy_says_what_it_is() -> None:
    front = read_front(SHIPPED.read_text(), "here")
    assert (front.expects, front.licence) == ("conversation", "Apache-2.0")


# --- refused before any cost ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ({"type": "google-generativeai", "model": "m"}, "the SDK takes none; `type: gemini` reaches the same models"),
        (
            {"type": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1", "extra_body": {"response_format": {"type": "json_object"}}},
            "its extra_body sets response_format, too; keep one of the two",
        ),
    ],
)  # fmt: skip
def test_a_backend_that_cannot_be_sent_one_is_refused(
    command: Command, tmp_path: Path, backend: dict[str, Any], said: str
) -> None:
    job = job_in(tmp_path, backends={"default": backend})
    for name in ("generate", "preview", "doctor"):
        ended = command(name, job, *(["-o", tmp_path / "run"] if name == "generate" else []))
        assert ended.code == 2
        assert f"$.backends.default: answers have to fit {tmp_path / 'mine.schema.json'}" in ended.err
        assert said in ended.err
    assert not (tmp_path / "run").exists()


def test_what_the_simulator_cannot_obey_is_refused(command: Command, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    (tmp_path / "mine.schema.json").write_text('{"type": "object", "not": {"type": "null"}}')
    ended = command("generate", job, "-o", tmp_path / "run")
    assert (ended.code, "cannot obey it: 'not' cannot be simulated" in ended.err) == (2, True)


def test_a_schema_that_is_none_is_refused_with_its_path(command: Command, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    (tmp_path / "mine.schema.json").write_text('{"type": "lesson"}')
    ended = command("generate", job, "-o", tmp_path / "run")
    assert ended.code == 2
    assert f"schema {tmp_path / 'mine.schema.json'}: it is not a JSON Schema" in ended.err


def test_a_link_out_of_the_project_is_not_read(command: Command, tmp_path: Path) -> None:
    job = job_in(tmp_path / "project")
    secret = tmp_path / "secret.schema.json"
    secret.write_text('{"title": "my own"}')
    beside = tmp_path / "project" / "mine.schema.json"
    beside.unlink()
    beside.symlink_to(secret)
    ended = command("preview", job)
    assert ended.code == 2
    assert f"this leads to {secret}" in ended.err
    assert "my own" not in ended.out + ended.err
    assert "my own" in command("preview", job, "--allow-outside", "--json").out
    (tmp_path / "project" / "notes.json").write_text('{"title": "my own"}')
    beside.unlink()
    beside.symlink_to("notes.json")
    assert "ends in .schema.json" in command("preview", job).err


# --- whole runs and doctor against servers -------------------------------------------------------


def settings_of(kind: str, url: str) -> dict[str, Any]:
    import msgspec

    plain = msgspec.to_builtins(configs(url, max_tokens=500)[kind])
    kept = {key: plain[key] for key in ("type", "model", "base_url", "max_tokens")}
    return kept | ({"project": plain["project"]} if kind == "vertex" else {})


@pytest.mark.parametrize("kind", SENT)
def test_a_run_and_doctor_at_a_server_that_obeys(
    command: Command, tmp_path: Path, server: SchemaServer, kind: str
) -> None:
    job = job_in(tmp_path, backends={"default": settings_of(kind, server.url)}, conversations=2)
    ended = command("doctor", job)
    assert ended.code == 0, ended.out
    assert "schema     mine.schema.json, sent as " in ended.out
    assert "the answer fits" in ended.out
    assert len(server.bodies) == 2
    command("generate", job, "-o", tmp_path / "run")
    assert all("schema" in json.dumps(body).lower() for body in server.bodies[2:])
    assert len(server.bodies) > 2


@pytest.mark.parametrize("kind", SENT)
def test_doctor_says_what_a_server_refuses_in_its_words(
    command: Command, tmp_path: Path, server: SchemaServer, kind: str
) -> None:
    server.refuses = "structured outputs are not for this model"
    ended = command("doctor", job_in(tmp_path, backends={"default": settings_of(kind, server.url)}))
    assert ended.code == 5
    (line,) = [line for line in ended.out.splitlines() if line.startswith("FAIL")]
    assert "the service refuses mine.schema.json, sent as " in line
    assert "structured outputs are not for this model" in line
    assert "It accepts the call without the schema" in line


def judged_job(folder: Path, judge: dict[str, Any]) -> Path:
    """Write a job in which only the judge has a schema."""
    job = job_in(
        folder,
        prompt="education_dialogue",
        prompts={"oracle": "./verdict.j2"},
        backends={"default": {"type": "simulator"}, "judge": judge},
    )
    shutil.copy(find("prompts", "oracle_guarded"), folder / "verdict.j2")
    (folder / "verdict.schema.json").write_text(json.dumps({"type": "object", "required": ["better"]}))
    return job


def test_doctor_tries_the_judges_schema_with_the_judge_alone(
    command: Command, tmp_path: Path, server: SchemaServer
) -> None:
    job = judged_job(tmp_path, settings_of("openai", server.url))
    ended = command("doctor", job)
    assert ended.code == 0, ended.out
    assert ended.out.count("schema     verdict.schema.json, sent as response_format: the answer fits") == 1
    assert len(server.bodies) == 2
    server.refuses = "no such form"
    ended = command("doctor", job)
    assert (ended.code, "the service refuses verdict.schema.json" in ended.out) == (5, True)


def test_doctor_says_that_a_judges_schema_cannot_be_sent(command: Command, tmp_path: Path) -> None:
    job = judged_job(tmp_path, {"type": "simulator"})
    (tmp_path / "verdict.schema.json").write_text('{"type": "object", "not": {"type": "null"}}')
    ended = command("doctor", job)
    assert (ended.code, "verdict.schema.json cannot be sent: " in ended.out) == (2, True)


def test_doctor_says_where_a_server_heeds_no_schema(
    command: Command, tmp_path: Path, server: SchemaServer
) -> None:
    server.ignores = True
    job = job_in(tmp_path, backends={"default": settings_of("openai", server.url)})
    ended = command("doctor", job)
    assert ended.code == 5
    assert "accepts mine.schema.json, sent as response_format, but does not follow it: 'Hello!'" in ended.out
    ended = command("doctor", job, "--no-call")
    assert (ended.code, "answers have to fit mine.schema.json" in ended.out) == (0, True)


def test_a_job_without_a_schema_is_diagnosed_by_one_call(
    command: Command, tmp_path: Path, server: SchemaServer
) -> None:
    server.refuses = "no schemas here"
    job = job_in(tmp_path, backends={"default": settings_of("openai", server.url)})
    ended = command("doctor", job, "--set", "prompt=education_dialogue_json")
    assert (ended.code, len(server.bodies), "schema" in ended.out) == (0, 1, False)
