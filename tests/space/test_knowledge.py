"""Knowledge files of spaces: invalid files, uses of valid ones, and the shipped one with its space."""

from __future__ import annotations

import itertools
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core import resources
from edgen.core.errors import SpaceError
from edgen.merging.new_run import copy_job
from edgen.space import Space, digest_content, dump_space, load_space, parse_space
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from tests import ROOT

SPACE = "name: s\nknowledge: facts.json\ndimensions:\n  course: [CS101, CS102]\n"


def space(folder: Path, facts: str | bytes = '[{"id": "CS101"}]', text: str = SPACE) -> Path:
    (folder / "facts.json").write_bytes(facts if isinstance(facts, bytes) else facts.encode())
    (folder / "space.yaml").write_text(text, encoding="utf-8")
    return folder / "space.yaml"


def test_it_is_read_with_its_space_and_counts_as_content(tmp_path: Path) -> None:
    path = space(tmp_path)
    read = load_space(path)
    assert read.knowledge is not None
    assert (read.knowledge.file, read.knowledge.value) == ("facts.json", [{"id": "CS101"}])
    assert parse_space(dump_space(read), "s", path) == read
    other = load_space(space(tmp_path, '[{"id": "CS102"}]'))
    without = load_space(space(tmp_path, text=SPACE.replace("knowledge: facts.json\n", "")))
    assert len({digest_content(one) for one in (read, other, without)}) == 3


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ('[{"id": "CS101"}, {"id": "CS1', "it is not JSON: .* Was it cut off?"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('"CS101"', "expected a JSON object or a list"),
        ("{}", "expected a JSON object or a list with something in it"),
        (b"[\xff]", "byte 1 is not UTF-8"),
    ],
)
def test_what_is_none_is_a_sentence(facts: str | bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match=said) as caught:
        load_space(space(tmp_path, facts))
    assert "facts.json" in str(caught.value)


def test_one_that_is_too_large_missing_or_elsewhere_is_a_sentence(tmp_path: Path) -> None:
    path = space(tmp_path)
    with (tmp_path / "facts.json").open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(SpaceError, match="larger than 8 MiB"):
        load_space(path)
    (tmp_path / "facts.json").unlink()
    with pytest.raises(SpaceError, match="there is no such file"):
        load_space(path)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.json").write_text('{"key": 1}')
    (tmp_path / "facts.json").symlink_to(tmp_path / "secret" / "key.json")
    with pytest.raises(SpaceError, match="lies next to the space's"):
        load_space(path)
    for name in ("../facts.json", "secret/key.json", "facts.yaml", "x.schema.json", "[1]"):
        with pytest.raises(SpaceError, match=r"\$.knowledge"):
            parse_space(SPACE.replace("facts.json", name), "s")


def test_a_run_keeps_a_copy_and_hands_it_on(tmp_path: Path) -> None:
    job = {
        "name": "t", "conversations": 1, "space": str(space(tmp_path)), "protocol": "selfplay", "selfplay": {"max_turns": 3},
        "prompts": {"teacher": str(tmp_path / "p.j2"), "student": str(tmp_path / "p.j2")},
        "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    (tmp_path / "p.j2").write_text(
        "{% block system %}You are one of two who talk about {{ course }}. Say only what you say next, in one to three sentences."
        "{% endblock %}{% block user %}The lesson begins.{% endblock %}"
    )
    run = edgen.generate(job, output=tmp_path / "run", progress=False, allow_outside=True)
    with RunReader(run.folder) as reader:
        assert reader.space == load_space(tmp_path / "space.yaml")
        (tmp_path / "other").mkdir()
        copy_job(reader.rundir, RunFolder(tmp_path / "other"), reader.job)
    copied = tmp_path / "other" / "inputs" / "facts.json"
    assert copied.read_bytes() == (tmp_path / "facts.json").read_bytes()


def shipped() -> tuple[Space, dict[str, dict[str, Any]]]:
    """Return the space and its catalogue: a record for each offering."""
    read = load_space(resources.find("preference_space", "course_advising"))
    assert read.knowledge is not None
    return read, read.knowledge.value


def _meets(offering: dict[str, Any]) -> set[tuple[str, int]]:
    """Return every five minutes that an offering takes."""
    begin, end = (
        int(offering[name][:2]) * 60 + int(offering[name][3:5]) for name in ("StartTime", "EndTime")
    )
    return {(day, minute) for day in offering["DaysOfClass"] for minute in range(begin, end, 5)}


class TestCourseAdvising:
    def test_the_catalogue_holds_together(self) -> None:
        _, offered = shipped()
        courses = {one["Course"] for one in offered.values()}
        assert 30 <= len(courses) <= 60
        for name, one in offered.items():
            course, _, section = name.partition("-")
            assert one["Course"] == course
            assert [*one["Section"].values()] == [section]
            assert one["Semester"] == {"A": "Fall", "S": "Spring"}[section[0]]
            for required in (one["EnforcedReq"], one["AdvisoryReq"]):
                assert {*filter(None, required.split(" and "))} <= courses - {course}
            start, end = one["StartTime"][:5], one["EndTime"][:5]
            assert one["MeetingInfo"] == ", ".join(f"{day[:3]} {start}-{end}" for day in one["DaysOfClass"])

    def test_what_the_space_says_of_courses_is_in_the_catalogue(self) -> None:
        read, offered = shipped()
        titles = {one["Course"]: one["CourseTitle"] for one in offered.values()}
        required = {
            one["Course"]: {*filter(None, one["EnforcedReq"].split(" and "))} for one in offered.values()
        }
        semesters = {
            entry.value: (entry.fields["Semester"], entry.fields["Year"]) for entry in read["term"].entries
        }
        taken = {entry.value: entry.fields for entry in read["taken"].entries}
        for fields in taken.values():
            own = [one["offering"] for one in fields["prior"]]
            names = [offering.partition("-")[0] for offering in own]
            assert {*own} <= offered.keys()
            assert fields["courses"] == ", ".join(f"{name} {titles[name]}" for name in names)
            assert all(required[name] <= {*names} for name in names)
        for entry in read["suggested"].entries:
            (term,) = entry.when["term"]
            those = [offered[one["offering"]] for one in entry.fields["suggested"]]
            assert [[*one["Section"]] for one in those] == [
                [one["instructor"]] for one in entry.fields["suggested"]
            ]
            assert {(one["Semester"], one["Year"]) for one in those} == {semesters[term]}
            assert not any(_meets(a) & _meets(b) for a, b in itertools.combinations(those, 2))
            for one, line in zip(those, entry.fields["details"], strict=True):
                course = one["Course"]
                assert course in entry.value
                told = (course, one["CourseTitle"], one["Description"], *one["MeetingInfo"].split(", "))
                assert all(text in line for text in told)
                assert f"{one['Credits']} credits, about {one['HoursAWeek']} hours" in line
                assert f"helpfulness {one['Helpfulness']} of 5" in line
                for before in entry.when["taken"]:
                    names = {o["offering"].partition("-")[0] for o in taken[before]["prior"]}
                    assert course not in names
                    assert required[course] <= names

    def test_no_request_holds_what_only_the_other_knows(self, tmp_path: Path) -> None:
        asked: dict[tuple[int, str], list[str]] = defaultdict(list)

        def speaker(role: str) -> Any:
            async def say(request: edgen.Request) -> str:
                own = asked[request.address.scenario, role]
                own.append("\n".join([message.content for message in request.messages]))
                return f"This is turn {len(own)} of the {role}."

            return say

        run = edgen.generate(
            ROOT / "jobs" / "course_advising.yaml", conversations=5, output=tmp_path / "run", progress=False,
            selfplay={"max_turns": 4}, backends={role: speaker(role) for role in ("advisor", "student")},
        )  # fmt: skip
        assert run.status.accepted == 5
        with RunReader(run.folder) as reader:
            for conversation in reader.conversations():
                values, index = conversation.scenario.values, conversation.candidate.scenario
                details = conversation.scenario.fields["suggested"]["details"]
                known = {
                    "student": [values[name] for name in ("goal", "interest", "constraint", "persona")],
                    "advisor": [values["advisor_style"], *details],
                }
                for role, other in (("student", "advisor"), ("advisor", "student")):
                    texts = asked[index, role]
                    assert len(texts) == 2
                    assert all(own in text for text in texts for own in known[role])
                    assert not [text for text in texts for secret in known[other] if secret in text]
