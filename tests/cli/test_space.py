"""`edgen space from-ed`: released ED files to a space file with observed frequencies."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from edgen.cli.app import app
from edgen.core.errors import DataError, EdgenError, UsageError
from edgen.core.yaml_values import MAX_BYTES
from edgen.space import Space, load_space, parse_space
from edgen.space.entries import MAX_ENTRIES
from edgen.space.new_file import MAX_DATA_BYTES, MAX_PROBLEMS

BACKGROUND = {
    "topic": "Zeus",
    "student_prefrences": "lectures",
    "teacher_prefrences": "quizzes",
    "student_reactions": "and gets rude otherwise",
    "teacher_reactions": "and gives up otherwise",
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["space", "from-ed", *map(str, arguments)])


def failed(*arguments: object) -> EdgenError:
    """Run a command and return its error, which must be a message for people."""
    error = run(*arguments).exception
    assert isinstance(error, EdgenError), error
    assert error.exit_code == 2
    return error


def record(**changes: Any) -> dict[str, Any]:
    conversation = [
        {"role": "Teacher", "text": "Zeus …"},
        {"role": "Student", "text": "[end of conversation]"},
    ]
    return {"background_info": {**BACKGROUND, **changes}, "conversation": conversation}


def without(key: str) -> dict[str, Any]:
    made = record()
    del made["background_info"][key]
    return made


def ed_file(path: Path, *records: Any) -> Path:
    path.write_text(json.dumps(list(records), indent=4), encoding="utf-8")
    return path


def weights(space: Space, dimension: str) -> dict[str, float]:
    return {entry.value: entry.weight for entry in space[dimension].entries}


def test_released_records_become_a_space_with_their_counts(shared_data: Path, tmp_path: Path) -> None:
    source, out = shared_data / "ed_release_sample.json", tmp_path / "observed.yaml"
    result = run(source, "-o", out)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == (
        "19 records: 19 topics, 4 student preferences, 6 student reactions, 4 teacher preferences, "
        f"5 teacher reactions; written to {out}\n"
    )
    space = load_space(out)
    assert space.name == "observed"
    assert space.source == "Observed frequencies in 19 records: ed_release_sample.json"
    backgrounds = [found["background_info"] for found in json.loads(source.read_text("utf-8"))]
    for dimension, key in {
        "topic": "topic",
        "student_preference": "student_prefrences",
        "student_reaction": "student_reactions",
        "teacher_preference": "teacher_prefrences",
        "teacher_reaction": "teacher_reactions",
    }.items():
        assert weights(space, dimension) == Counter(background[key] for background in backgrounds)


def test_without_out_the_space_is_printed_and_nothing_else(tmp_path: Path) -> None:
    one = ed_file(tmp_path / "one.json", record(), record(topic="Ares"), record())
    two = ed_file(tmp_path / "two.json", record(topic="Ares"), record(topic="{{ 7*7 }}"), record())
    result = run(one, two, "--name", "my own")
    space = parse_space(result.stdout, "stdout")
    assert space.name == "my own"
    assert space.source == "Observed frequencies in 6 records: one.json, two.json"
    # in descending order of frequency
    assert list(weights(space, "topic").items()) == [("Zeus", 3), ("Ares", 2), ("{{ 7*7 }}", 1)]
    assert parse_space(run(one).stdout, "stdout").name == "from-ed"


def test_both_spellings_are_read(tmp_path: Path) -> None:
    background = {key.replace("prefrences", "preferences"): value for key, value in BACKGROUND.items()}
    path = ed_file(tmp_path / "ed.json", {"background_info": background})
    assert weights(parse_space(run(path).stdout, "stdout"), "teacher_preference") == {"quizzes": 1}


def test_values_are_stripped_and_controls_in_them_replaced_and_reported(tmp_path: Path) -> None:
    path = ed_file(
        tmp_path / "ed.json", record(topic=" Zeus\n"), record(topic="Ze\x1b[31mus\u202e"), record()
    )
    result = run(path)
    assert weights(parse_space(result.stdout, "stdout"), "topic") == {"Zeus": 2, "Ze [31mus": 1}
    remarks = result.stderr.splitlines()
    assert remarks[0] == (
        f"{path}: $[1].background_info.topic: control characters were replaced in 'Ze\\x1b[31mus\\u202e'"
    )
    assert len(remarks) == 2


def test_values_that_look_the_same_are_counted_as_the_first_and_that_is_said(tmp_path: Path) -> None:
    topics = ("caf\u00e9", "cafe\u0301", "caf\u00e9\u200b", "Zeus")
    path = ed_file(tmp_path / "ed.json", *(record(topic=topic) for topic in topics))
    result = run(path)
    assert weights(parse_space(result.stdout, "stdout"), "topic") == {"caf\u00e9": 3, "Zeus": 1}
    assert result.stderr.splitlines()[0] == (
        f"{path}: $[1].background_info.topic: 'cafe\\u0301' is counted as 'caf\\xe9'"
    )


def test_a_space_that_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    many = ed_file(tmp_path / "many.json", *(record(topic=f"t{i}") for i in range(MAX_ENTRIES + 1)))
    assert "$.topics: 20,001 entries are too many; a list holds at most 20,000" in str(
        failed(many, "-o", out)
    )
    long = ed_file(tmp_path / "long.json", *(record(topic=f"t{i}" + "x" * 10_000) for i in range(1_000)))
    assert "the space file would be larger than 8 MiB" in str(failed(long, "-o", out))
    assert not out.exists()


def test_nothing_is_overwritten_unless_asked_for(tmp_path: Path) -> None:
    path, out = ed_file(tmp_path / "ed.json", record()), tmp_path / "mine.yaml"
    out.write_text("precious")
    error = failed(path, "-o", out)
    assert isinstance(error, UsageError)
    assert str(error) == (
        f"-o {out}: this already exists; choose another name, or pass --yes to overwrite it."
    )
    assert out.read_text() == "precious"
    assert run(path, "-o", out, "--force").exit_code == 0
    assert load_space(out).name == "mine"


def test_where_nothing_can_be_written_is_said(tmp_path: Path) -> None:
    path = ed_file(tmp_path / "ed.json", record())
    missing = tmp_path / "none" / "mine.yaml"
    assert str(failed(path, "-o", missing)) == (
        f"-o {missing}: there is no folder {missing.parent}; make it first."
    )
    assert "this is not a file, and it is not replaced" in str(failed(path, "-o", tmp_path, "--force"))
    assert "--name: a space needs a name" in str(failed(path, "--name", " "))


BAD_RECORDS = {
    "no object": (5, "$[1]: expected an object with background_info"),
    "a list": ([], "$[1]: expected an object with background_info"),
    "no background": ({"conversation": []}, "$[1].background_info: this key is missing"),
    "background a text": ({"background_info": "Zeus"}, "$[1].background_info: expected an object"),
    "missing topic": (without("topic"), "$[1].background_info.topic: this key is missing"),
    "missing preference": (
        without("student_prefrences"),
        "$[1].background_info.student_prefrences: this key is missing",
    ),
    "a number": (record(topic=5), "$[1].background_info.topic: expected a string, got a number"),
    "null": (record(topic=None), "$[1].background_info.topic: expected a string, got null"),
    "an array": (record(topic=["a"]), "$[1].background_info.topic: expected a string, got an array"),
    "blank": (
        record(teacher_reactions=" \n"),
        "$[1].background_info.teacher_reactions: this string is empty",
    ),
    "nothing to be seen": (
        record(topic="\u200b"),
        "$[1].background_info.topic: this string is empty or blank",
    ),
    "controls only": (record(topic="\x1b\x07"), "$[1].background_info.topic: this string is empty or blank"),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_a_bad_record_is_named_by_index_and_path(case: str, tmp_path: Path) -> None:
    bad, expected = BAD_RECORDS[case]
    path = ed_file(tmp_path / "ed.json", record(), bad, record())
    error = failed(path)
    assert isinstance(error, DataError)
    lines = str(error).splitlines()
    assert lines[0] == f"data {path}: 1 problem:"
    assert expected in lines[1]


BAD_FILES = {
    "empty": (b"", "it is empty; an ED file is a JSON list of records."),
    "blank": (b" \n", "it is empty; an ED file is a JSON list of records."),
    "empty list": (b"[]", "its list is empty; there is nothing to count."),
    "an object": (b'{"topic": "Zeus"}', "it is JSON, but not a list; an ED file is a JSON list of records."),
    "cut off": (b'[{"background_info": {', "it is not valid JSON: Input data was truncated."),
    "not JSON": (b"# Zeus", "it is not valid JSON: invalid character (byte 0)."),
    "not UTF-8": ('[{"topic": "été"}]'.encode("latin-1"), "byte 12 is not UTF-8; save the file as UTF-8."),
    "too deep": (b"[" * 100_000, "it is nested too deeply."),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_and_writes_nothing(case: str, tmp_path: Path) -> None:
    content, expected = BAD_FILES[case]
    path, out = tmp_path / "ed.json", tmp_path / "out.yaml"
    path.write_bytes(content)
    error = failed(path, "-o", out)
    assert isinstance(error, DataError)
    assert str(error) == f"data {path}: {expected}"
    assert not out.exists()


def test_a_file_that_is_missing_a_folder_or_too_large_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(MAX_DATA_BYTES + 1)
    assert str(failed(large)) == f"data {large}: it is larger than 256 MiB, the limit."
    assert str(failed(tmp_path)) == f"data {tmp_path}: this is a folder, not a file."
    assert str(failed(tmp_path / "no.json")) == f"data {tmp_path / 'no.json'}: there is no such file."


def test_many_problems_are_counted_and_the_first_of_them_shown(tmp_path: Path) -> None:
    path = ed_file(tmp_path / "ed.json", *[record(topic=None)] * 1_000)
    lines = str(failed(path)).splitlines()
    assert lines[0] == f"data {path}: 1,000 problems, the first 20 of them:"
    assert len(lines) == 1 + MAX_PROBLEMS


def test_problems_of_all_files_are_reported_together(tmp_path: Path) -> None:
    good = ed_file(tmp_path / "good.json", record())
    bad = ed_file(tmp_path / "bad.json", record(topic=5))
    missing = tmp_path / "missing.json"
    assert str(failed(good, bad, missing)).splitlines() == [
        "data (3 files): 2 of them cannot be used:",
        f"  {bad}: 1 problem:",
        f"  {bad} $[0].background_info.topic: expected a string, got a number",
        f"  {missing}: there is no such file.",
    ]


def test_more_than_any_other_file_may_hold_is_read(tmp_path: Path) -> None:
    long = json.dumps(record(), indent=4).replace("Zeus …", "Zeus " * 2_000)
    path, out = tmp_path / "large.json", tmp_path / "out.yaml"
    count = 1 + MAX_BYTES // len(long)
    path.write_text("[" + ",\n".join([long] * count) + "]", encoding="utf-8")
    assert path.stat().st_size > MAX_BYTES
    assert run(path, "-o", out).exit_code == 0
    assert weights(load_space(out), "topic") == {"Zeus": count}


def from_csv(path: Path, text: str, *options: str) -> Result:
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["space", "from-csv", str(path), *options])


def test_a_table_becomes_a_space(tmp_path: Path) -> None:
    table = "topic,topic.grade,topic.note,learner\nFractions,4,a,shy\nDecimals,5,,bold\nFractions,4,a,  shy \n,,,calm\n"
    made = from_csv(tmp_path / "my.csv", table)
    space = parse_space(made.stdout, "stdout")
    assert space.names == ("topic", "learner")
    assert [(one.value, one.weight, one.fields) for one in space["topic"].entries] == [
        ("Fractions", 2.0, {"grade": 4, "note": "a"}),
        ("Decimals", 1.0, {"grade": 5}),
    ]
    assert weights(space, "learner") == {"shy": 2, "bold": 1, "calm": 1}
    out = tmp_path / "out.yaml"
    assert from_csv(tmp_path / "my.csv", table, "--weights", "equal", "-o", str(out)).exit_code == 0
    assert set(weights(load_space(out), "learner").values()) == {1}
    semicolons = from_csv(tmp_path / "other.csv", table.replace(",", ";"))
    assert parse_space(semicolons.stdout, "x").dimensions == space.dimensions


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("topic\n", "at least one row below it"),
        ("topic,for\na,b\n", "column 2: 'for': the name for means something else to Jinja"),
        ("topic,topic\na,b\n", "this heading is there twice"),
        ("topic,mood.x\na,b\n", "this is a field of mood, and there is no column mood"),
        ("topic,topic.grade\na,1\na,2\n", "row 3: the fields of 'a' differ from those in an earlier row"),
        ('topic\n"a\n', "it is not valid CSV"),
    ],
)
def test_a_table_that_makes_no_space_is_refused(tmp_path: Path, table: str, said: str) -> None:
    made = from_csv(tmp_path / "my.csv", table)
    assert isinstance(made.exception, EdgenError)
    assert said in str(made.exception)


def test_records_of_any_dimensions_become_a_space(tmp_path: Path) -> None:
    said = {"value": "Fractions", "grade": 4}
    own = {"scenario": {"topic": said, "learner": "shy"}, "roles": ["Tutor", "Learner"]}
    made = run(ed_file(tmp_path / "own.json", own, own))
    space = parse_space(made.stdout, "stdout")
    assert space["topic"].entries[0].fields == {"grade": 4}
    assert [role.name for role in space.roles] == ["Tutor", "Learner"]
    assert weights(space, "learner") == {"shy": 2}
    assert "give each its own `sees`" in made.stderr
    wider = {**record(), "scenario": {"topic": BACKGROUND["topic"], "mood": "calm"}}
    space = parse_space(run(ed_file(tmp_path / "wider.json", wider)).stdout, "stdout")
    assert space.names[-1] == "mood"
    assert len(space.names) == 6
