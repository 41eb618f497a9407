"""A job file becomes a Job, or an error with every problem and its path."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from edgen.config import (
    KNOBS,
    Job,
    list_own_words,
    load_job,
    parse_job,
    resolve_values,
    select_shaping_values,
    with_speakers,
)
from edgen.core.errors import EdgenError, FileError, JobError
from edgen.core.values import ROLES
from edgen.core.yaml_values import _parse_number
from edgen.providers.openai.config import OpenAIConfig
from edgen.simulator.config import SimulatorConfig
from tests import ROOT

GOOD = """
name: quickstart
seed: 7
conversations: 200
space: education_dialogue
prompt: education_dialogue
backends:
  default: {type: simulator}
"""


def job_file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "job.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_defaults_are_the_documented_ones(tmp_path: Path) -> None:
    job = load_job(job_file(tmp_path, GOOD))
    assert job.backends == {"default": SimulatorConfig()}
    assert (job.design, job.protocol, job.asks, job.replicates, job.top_up) == (
        "balanced",
        "oneshot",
        3,
        1,
        False,
    )
    assert (job.limits.in_flight, job.limits.attempts, job.limits.timeout) == (256, 6, 120)
    assert (job.split.test, job.split.by, job.shards.train, job.shards.test) == (0.15, "scenario", 5, 1)


def test_the_shipped_quickstart_is_a_job() -> None:
    assert load_job(ROOT / "jobs" / "quickstart.yaml").conversations == 200


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("sed: 7", "$.sed: unknown key (did you mean 'seed'?)"),
        ("seed: -1", "$.seed: expected a whole number >= 0"),
        ("seed: 1.5", "$.seed: expected a whole number"),
        ("seed: 99999999999999999999", "$.seed:"),
        ("name: ../escape", "$.name:"),
        ("name: a/b", "$.name:"),
        ("name: ''", "$.name:"),
        ("conversations: 0", "$.conversations: expected a whole number >= 1"),
        ("conversations: '200'", "$.conversations: expected a whole number, got a text"),
        ("split: {by: 0.1}", "$.split.by: expected a text or a list, got a number (it is 0.1)"),
        ("space: no", "a text that YAML reads as a truth value goes in quotes"),
        ("space: ''", "$.space:"),
        ("design: sequential", "$.design:"),
        ("protocol: monologue", "$.protocol:"),
        ("branch: {}", "$.branch: the oneshot protocol does not branch; selfplay does: `protocol: selfplay`"),
        ("backends: {}", "$.backends.default: this key is missing"),
        ("backends: []", "$.backends: expected a mapping, got a list"),
        (
            "backends: {default: {type: simulatr}}",
            "$.backends.default.type: unknown type 'simulatr' (did you mean 'simulator'?)",
        ),
        ("backends: {default: {}}", "$.backends.default.type: this key is missing"),
        ("backends: {default: {type: openai}}", "$.backends.default.model: this key is missing"),
        (
            "backends: {default: {type: openai, model: m, api_key: x}}",
            "$.backends.default.api_key: unknown key (did you mean 'api_key_env'?)",
        ),
        (
            "backends: {default: {type: openai, model: m, base_url: 'ftp://x'}}",
            "$.backends.default.base_url:",
        ),
        (
            "backends: {default: {type: openai, model: m, base_url: 'http://key@host/v1'}}",
            "$.backends.default.base_url:",
        ),
        (
            "backends: {default: {type: simulator, temperature: .nan}}",
            "$.backends.default.temperature: expected a finite number",
        ),
        ("limits: {in_flight: 0}", "$.limits.in_flight:"),
        ("limits: {timeout: .inf}", "$.limits.timeout: expected a finite number"),
        ("limits: {requests: 5}", "$.limits.requests: unknown key"),
        ("limits: {max_cost: 1}", "$.backends.default.price: a run under max_cost needs the price"),
        (
            "limits: {max_tokens: 100}",
            "$.backends.default.max_tokens: a run under max_cost or max_tokens needs it",
        ),
        ("limits: {max_cost: 1e3}", "got a text; write 1000 (it is '1e3')"),
        ("conversations: '1.5e+2'", "write 150"),
        ("limits: {max_cost: 1e30}", "write 1.0e+30"),
        ("limits: {max_cost: much}", "$.limits.max_cost: expected a number, got a text (it is 'much')"),
        ("name: a b", "$.name: expected letters, digits, dots, _ and -, a letter or digit first"),
        ("batch: {poll: soon}", "$.batch.poll: expected a time span like 6h, 90m or 45s (it is 'soon')"),
        ("split: {test: 1.0}", "$.split.test:"),
        ("split: {by: 5}", "$.split.by:"),
        ("strength: 4", "$.strength:"),
        ("shards: {train: 0}", "$.shards.train:"),
    ],
)
def test_a_bad_value_is_named_with_its_path(tmp_path: Path, change: str, said: str) -> None:
    path = job_file(tmp_path, yaml.safe_dump(yaml.safe_load(GOOD) | yaml.safe_load(change)))
    with pytest.raises(JobError) as caught:
        load_job(path)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("seed: 7", "sed: 7").replace("200", "0") + "limits: {in_flight: x}\n"
    with pytest.raises(JobError) as caught:
        load_job(job_file(tmp_path, text))
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is not a mapping"),
        (b"- a\n- b\n", "is not a mapping"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"name: [", "not valid YAML: line"),
        (b"name: a\nname: b\n", "'name' is given twice"),
        (b"name: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
        (b"\x00", "forbids"),
        (b"a: &a [x, *a]\n", "recursive"),
        (b"a: " + b"[" * 5000, "nested too deeply"),
        (b"#" * (9 * 1024 * 1024), "larger than 8 MiB"),
        (
            b"a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + b"".join(
                b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 10)) for c in range(98, 110)
            ),
            "more than 400,000 values",
        ),
    ],
    ids=[
        "empty",
        "list",
        "not-utf8",
        "syntax",
        "twice",
        "python-tag",
        "nul",
        "cycle",
        "deep",
        "large",
        "laughs",
    ],
)
def test_a_file_that_is_no_job_is_a_sentence(tmp_path: Path, text: bytes, said: str) -> None:
    with pytest.raises(JobError) as caught:
        load_job(job_file(tmp_path, text))
    assert said in str(caught.value)


def test_a_missing_file_and_a_folder_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="no such file"):
        load_job(tmp_path / "nothing.yaml")
    with pytest.raises(JobError, match="folder"):
        load_job(tmp_path)


def test_set_overrides_any_key(tmp_path: Path) -> None:
    path = job_file(tmp_path, GOOD)
    job = load_job(
        path,
        [
            "limits.in_flight=3",
            "backends.default={type: openai, model: m}",
            "backends.default.temperature=0.5",
            "split.by=topic",
            "limits.requests_per_minute=null",
        ],
    )
    assert job.limits.in_flight == 3
    assert job.backends["default"] == OpenAIConfig(model="m", temperature=0.5)
    assert job.split.by == "topic"


@pytest.mark.parametrize(
    "text", ["limits", "=3", "a..b=1", "name.x=1", "limits.in_flight=[", "limits.in_flght=3", "a b=1"]
)
def test_a_bad_set_is_a_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(EdgenError) as caught:
        load_job(job_file(tmp_path, GOOD), [text])
    assert caught.value.exit_code == 2


def test_the_resolved_job_reads_back_as_itself(tmp_path: Path) -> None:
    job = load_job(
        job_file(tmp_path, GOOD),
        ["backends.default={type: openai, model: m, stop: [a], extra_body: {k: [1]}}"],
    )
    assert parse_job(yaml.safe_load(yaml.safe_dump(resolve_values(job))), "again") == job


def test_every_key_of_a_job_is_a_knob_or_shapes(tmp_path: Path) -> None:
    played = (
        GOOD.replace("prompt: education_dialogue\n", "") + "\nprotocol: selfplay\nreplicates: 2\nbranch: {}\n"
    )
    assert {"selfplay", "branch"} & set(select_shaping_values(load_job(job_file(tmp_path, GOOD)))) == set()
    shape = select_shaping_values(load_job(job_file(tmp_path, played)))
    keys = {field.name for field in msgspec.structs.fields(Job)} - {"protocol_settings", "speakers"} | {
        "selfplay"
    }
    assert (
        set(shape) | set(KNOBS) | {"role_words", "forms", "too_long", "gates", "labels", "measures"} == keys
    )
    assert "price" not in shape["backends"]["default"]


KEY = "sk-abcdefghijklmnop1234567890"


@pytest.mark.parametrize(
    "change",
    [
        {"api_key_env": KEY},
        {"api_key_env": "AIzaSyABCDEFGHIJKLMNOP"},
        {"base_url": f"https://me:{KEY}@host/v1"},
        {"base_url": f"{KEY}"},
    ],
)
def test_a_key_in_the_wrong_place_is_refused_and_not_repeated(tmp_path: Path, change: dict[str, str]) -> None:
    backend = {"type": "openai", "model": "m"} | change
    path = job_file(tmp_path, yaml.safe_dump(yaml.safe_load(GOOD) | {"backends": {"default": backend}}))
    with pytest.raises(JobError) as caught:
        load_job(path)
    assert next(iter(change.values())) not in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('name: "abc\\n"', "$.name"),
        ("conversations: 10000000000000", "$.conversations"),
        ("replicates: 1048577", "$.replicates"),
        ('space: "\\ud800"', "half of a character"),
    ],
)
def test_values_that_would_break_something_later_are_refused_now(
    tmp_path: Path, change: str, said: str
) -> None:
    key = change.split(":")[0]
    kept = "".join(line + "\n" for line in GOOD.splitlines() if not line.startswith(f"{key}:"))
    with pytest.raises(JobError) as caught:
        load_job(job_file(tmp_path, f"{kept}{change}\n"))
    assert said in str(caught.value)


@pytest.mark.parametrize("body", [{"max_tokens": 9}, {"n": 5}, {"generationConfig": {"maxOutputTokens": 9}}])
def test_nothing_goes_behind_a_budgets_back(tmp_path: Path, body: dict[str, object]) -> None:
    backend = {"type": "openai", "model": "m", "max_tokens": 100, "extra_body": body}
    job = yaml.safe_load(GOOD) | {"backends": {"default": backend}, "limits": {"max_tokens": 1000}}
    with pytest.raises(JobError, match="extra_body"):
        load_job(job_file(tmp_path, yaml.safe_dump(job)))


def test_an_unquoted_brace_is_told_to_go_in_quotes(tmp_path: Path) -> None:
    path = job_file(tmp_path, GOOD)
    with pytest.raises(FileError, match="a text that begins with a brace or a bracket goes in quotes"):
        load_job(path, ["name={date"])
    with pytest.raises(JobError, match="got a mapping; a text that begins with a brace"):
        load_job(path, ["name={}"])


def test_a_number_that_yaml_reads_as_a_text_can_be_written_as_told(tmp_path: Path) -> None:
    """The text that the message proposes is valid, and means the intended number."""
    for text in ("1e3", "2.5e-2", "1e30", "-0", "12345678901234567890"):
        told = _parse_number(text)
        assert told is not None
        assert float(yaml.safe_load(told)) == float(text)
    for text in ("", "1e999", "e3", "0x10", "1_000", "١٢", "9" * 5000):
        told = _parse_number(text)
        assert told is None or float(yaml.safe_load(told)) == float(text)


class TestRoleWords:
    def test_they_shape_outcomes_where_there_are_any_and_nothing_where_there_are_none(
        self, tmp_path: Path
    ) -> None:
        plain = load_job(job_file(tmp_path, GOOD))
        assert "role_words" not in select_shaping_values(plain)
        job = load_job(
            job_file(tmp_path, GOOD + "role_words: {Student: [Kim], Teacher: [Tutor, Ms. Rivera]}\n")
        )
        assert list_own_words(job) == (("Teacher", ("Tutor", "Ms. Rivera")), ("Student", ("Kim",)))
        assert select_shaping_values(job)["role_words"] == {
            "Teacher": ["Tutor", "Ms. Rivera"],
            "Student": ["Kim"],
        }

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ("{teacher: [Tutor]}", "$.role_words.teacher: unknown role (known: Teacher, Student)"),
            ("{Teacher: [student]}", "$.role_words.Teacher[0]: 'student' is already a word for the student"),
            (
                "{Teacher: [Kim], Student: [kim]}",
                "$.role_words.Student[0]: 'kim' is already a word for the teacher",
            ),
            ("{Teacher: ['Tutor:']}", "$.role_words.Teacher[0]: a word for a role begins with"),
            ("{Teacher: ['  ']}", "$.role_words.Teacher[0]: a word for a role begins with"),
        ],
    )
    def test_a_word_that_cannot_name_a_side_is_refused(self, tmp_path: Path, words: str, said: str) -> None:
        with pytest.raises(JobError) as error:
            with_speakers(load_job(job_file(tmp_path, GOOD + f"role_words: {words}\n")), ROLES)
        assert said in "\n".join(map(str, error.value.problems))


def test_a_limit_of_retries_is_no_smaller_than_that_of_first_answers(tmp_path: Path) -> None:
    job = load_job(
        job_file(tmp_path, GOOD), ["backends.default={type: simulator, max_tokens: 9, retry_max_tokens: 20}"]
    )
    backend = job.backends["default"]
    assert [backend.room(scale) for scale in (1, 2, 4)] == [9, 20, 20]
    assert (
        load_job(job_file(tmp_path, GOOD), ["backends.default={type: simulator, max_tokens: 9}"])
        .backends["default"]
        .room(2)
        == 9
    )
    for wrong in ("max_tokens: 9, retry_max_tokens: 8", "retry_max_tokens: 8"):
        with pytest.raises(JobError, match=r"retry_max_tokens: it must be at least `max_tokens`"):
            load_job(job_file(tmp_path, GOOD), [f"backends.default={{type: simulator, {wrong}}}"])


def test_what_is_not_set_shapes_as_before(tmp_path: Path) -> None:
    plain = select_shaping_values(load_job(job_file(tmp_path, GOOD)))
    assert "too_long" not in plain
    assert "retry_max_tokens" not in plain["backends"]["default"]
    asked = select_shaping_values(load_job(job_file(tmp_path, GOOD), ["too_long=ask"]))
    assert asked["too_long"] == "ask"
