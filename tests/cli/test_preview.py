"""`edgen preview`: rendered prompts, differences from another job, and values that templates never use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command

TEMPLATE = "Teach {{ topic }}. The student likes {{ student_preference }}, {{ student_reaction }}.\nBe brief."


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "mine.j2").write_text(TEMPLATE)
    return tmp_path


def job(folder: Path, name: str = "job.yaml", **changes: Any) -> Path:
    made = {
        "name": "t",
        "seed": 7,
        "conversations": 4,
        "space": "education_dialogue",
        "prompt": "education_dialogue",
        "backends": {"default": {"type": "simulator"}},
        **changes,
    }
    path = folder / name
    path.write_text(json.dumps({key: value for key, value in made.items() if value is not None}))
    return path


SELFPLAY = {"protocol": "selfplay", "prompt": None}


class TestWhatIsNeverUsed:
    def test_it_is_said_for_each_variable(self, command: Command, here: Path) -> None:
        ended = command("preview", job(here, prompt="./mine.j2"), "-n", "1")
        assert ended.code == 0
        said = [
            f"`{name}` is never used by {here}/mine.j2" for name in ("teacher_preference", "teacher_reaction")
        ]
        *never, other = [line.removeprefix("edgen: ").rstrip(".") for line in ended.err.splitlines()]
        assert never == said
        assert other.startswith("the simulator cannot answer mine.j2. The prompt does not name Teacher. ")
        shown = json.loads(command("preview", here / "job.yaml", "--json").out)
        assert shown["warnings"] == [*said, other]

    def test_nothing_is_said_where_all_is_used(self, command: Command, here: Path) -> None:
        for prompt in ("education_dialogue", "education_dialogue_json"):
            assert command("preview", job(here, prompt=prompt)).err == ""
        one = command("preview", job(here), "--set", "conversations=1").out
        assert one.splitlines()[-1].startswith("1 scenario is planned, of ")
        assert command("preview", job(here, **SELFPLAY)).err == ""

    def test_subject_and_level_count_where_the_space_has_them(self, command: Command, here: Path) -> None:
        err = command("preview", job(here, space="broad")).err
        assert "`subject` is never used by education_dialogue." in err
        assert "`level` is never used by education_dialogue." in err
        assert command("preview", job(here, space="broad", prompt="education_dialogue_json")).err == ""

    def test_each_side_answers_for_its_own_variables(self, command: Command, here: Path) -> None:
        (here / "teacher.j2").write_text("You teach {{ topic }}. You like {{ teacher_preference }}.")
        err = command("preview", job(here, **SELFPLAY, prompts={"teacher": "./teacher.j2"})).err
        assert err == f"edgen: `teacher_reaction` is never used by {here}/teacher.j2 (the teacher's side).\n"

    def test_doctor_says_it_too(self, command: Command, here: Path) -> None:
        out = command("doctor", job(here, prompt="./mine.j2"), "--no-call").out
        assert "never uses teacher_preference, teacher_reaction" in out


def differences(command: Command, path: Path, other: str | Path, *more: str) -> dict[str, Any]:
    ended = command("preview", path, "--diff", other, "--json", *more)
    assert ended.code == 0, ended.err
    result: dict[str, Any] = json.loads(ended.out)
    return result


class TestDiff:
    def test_a_template_in_the_place_of_the_jobs(self, command: Command, here: Path) -> None:
        path = job(here, prompt="./mine.j2")
        (here / "other.j2").write_text(TEMPLATE.replace("Be brief", "Be very brief"))
        ended = command("preview", path, "-n", "1", "--diff", "other.j2")
        assert ended.code == 0, ended.err
        assert "Be{+ very+} brief." in ended.out
        facts = differences(command, path, "other.j2")
        assert len(facts["differences"]) == 3
        one = facts["differences"][0]
        assert one["other_scenario"] is None
        texts = one["prompts"]["default"]
        assert texts["left"].endswith("\nBe brief.")
        assert texts["right"] == texts["left"].replace("Be brief", "Be very brief")
        assert texts["diff"].startswith(f"--- {path}\n+++ other.j2\n@@ ")
        shipped = differences(command, path, "education_dialogue")
        assert "Simulate a conversation" in shipped["differences"][0]["prompts"]["default"]["right"]

    def test_side_by_side_where_there_is_room(
        self, command: Command, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (here / "other.j2").write_text(TEMPLATE.replace("Be brief", "Be \x1b[31m very brief") + "\nAnd kind.")
        monkeypatch.setenv("COLUMNS", "110")
        lines = command(
            "preview", job(here, prompt="./mine.j2"), "-n", "1", "--diff", "other.j2"
        ).out.splitlines()
        assert max(map(len, lines)) <= 110
        (changed,) = [line for line in lines if "Be " in line]
        assert "Be brief." in changed[:55]
        assert "{+" in changed[55:]
        assert "\\x1b" in changed
        assert "{+And kind.+}" in "\n".join(lines)

    def test_another_job_and_its_other_scenarios(self, command: Command, here: Path) -> None:
        path = job(here)
        same = differences(command, path, job(here, "same.yaml", prompt="education_dialogue_json"))
        assert same["warnings"] == []
        assert not same["differences"][0]["prompts"]["default"]["same"]
        other = differences(command, path, job(here, "other.yaml", seed=8, space="broad", conversations=2))
        assert len(other["differences"]) == 2
        assert (
            other["differences"][0]["other_scenario"]["topic"] != other["differences"][0]["scenario"]["topic"]
        )
        (warning,) = [text for text in other["warnings"] if "different scenarios" in text]
        assert "seed is 7 in one and 8 in the other" in warning
        assert "space is education_dialogue (" in warning

    def test_arms(self, command: Command, here: Path) -> None:
        arms = {"plain": {}, "as-json": {"prompt": "education_dialogue_json"}, "hot": {"asks": 2}}
        path = job(here, arms=arms)
        facts = differences(command, path, "as-json")
        assert (facts["left"], facts["right"]) == ("plain", "as-json")
        assert differences(command, path, "hot")["differences"][0]["prompts"]["default"]["same"]
        shown = command("preview", path, "--diff", "hot").out
        assert "the same in both" in shown
        assert shown.startswith("asks is 3 in the first, 2 in the second\n\n")
        assert differences(command, path, "hot")["job"] == {"asks": ["3", "2"]}
        refused = command("preview", path, "--diff", "plain")
        assert (refused.code, "this is the first arm" in refused.err) == (2, True)
        near = command("preview", path, "--diff", "as-jsn")
        assert (near.code, "did you mean 'as-json'?" in near.err) == (2, True)

    def test_a_side_of_selfplay(self, command: Command, here: Path) -> None:
        path = job(here, **SELFPLAY)
        (here / "teacher.j2").write_text("{{ topic }}: {{ teacher_preference }}, {{ teacher_reaction }}")
        (here / "either.j2").write_text("{{ topic }}")
        prompts = differences(command, path, "teacher.j2")["differences"][0]["prompts"]
        assert (prompts["teacher"]["same"], prompts["student"]["same"]) == (False, True)
        refused = command("preview", path, "--diff", "either.j2")
        assert (refused.code, "as in --diff teacher=either.j2" in refused.err) == (2, True)
        prompts = differences(command, path, "student=either.j2")["differences"][0]["prompts"]
        assert (prompts["teacher"]["same"], prompts["student"]["same"]) == (True, False)
        refused = command("preview", path, "--diff", "studnt=either.j2")
        assert (refused.code, "did you mean 'student'?" in refused.err) == (2, True)

    @pytest.mark.parametrize(
        ("other", "sentence"),
        [
            ("oracle_response", "it says `expects: verdict`"),
            ("education_dialog", "did you mean 'education_dialogue'?"),
            ("./none.j2", "there is no such file"),
            ("none.yaml", "there is no such file"),
        ],
    )
    def test_mistakes(self, command: Command, here: Path, other: str, sentence: str) -> None:
        ended = command("preview", job(here), "--diff", other)
        assert ended.code == 2
        assert sentence in ended.err
        assert ended.out == ""

    def test_long_prompts_take_no_time(self, command: Command, here: Path) -> None:
        """Beyond the limit, lines are not compared: equal lines appear as changed too."""
        for name, odd in (("a", 2), ("b", 3)):
            loop = f"{{% for i in range(500) %}}{name} b a b{{{{ i % {odd} }}}}\nthe same\n{{% endfor %}}"
            (here / f"{name}.j2").write_text(loop + "{{ topic }}")
        path = job(here, prompt="./a.j2")
        diff = differences(command, path, "b.j2")["differences"][0]["prompts"]["default"]["diff"].split("\n")
        assert (diff.count("-the same"), diff.count("+the same"), diff.count(" the same")) == (500, 500, 0)
        assert command("preview", path, "-n", "1", "--diff", "b.j2").code == 0


def test_a_template_for_another_use_is_refused(command: Command, here: Path) -> None:
    ended = command("preview", job(here, prompt="oracle_conversation"))
    assert ended.code == 2
    assert "it says `expects: verdict`" in ended.err
    ended = command("preview", job(here, **SELFPLAY, prompts={"teacher": "closing_student"}))
    assert "it says `expects: probability`" in ended.err
