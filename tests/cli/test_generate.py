"""`edgen generate`, `init`, `preview`, `status` and `doctor` on the command line, mistakes included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import ROOT
from tests.cli.command import Command

QUICKSTART = ROOT / "jobs" / "quickstart.yaml"


def job(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "job.yaml"
    base = yaml.safe_load(QUICKSTART.read_text())
    path.write_text(yaml.safe_dump(base | {"conversations": 5} | changes))
    return path


def test_the_quickstart_makes_a_checked_data_set(command: Command, tmp_path: Path) -> None:
    ended = command("generate", QUICKSTART, "-o", tmp_path / "run", "--show", "1")
    assert ended.code == 0, ended.err
    assert "accepted   200" in ended.out
    assert "(simulated)" in ended.out
    assert "probability that the student understood" in ended.out
    assert command("validate", tmp_path / "run").code == 0
    manifest = json.loads((tmp_path / "run" / "shards" / "manifest.json").read_text())
    assert manifest["simulated"] is True
    assert manifest["counts"] == {"train": 170, "test": 30}
    record = json.loads((tmp_path / "run" / "shards" / "conversations_eval.json").read_text())[0]
    assert list(record) == ["background_info", "conversation", "id", "probability", "ended_by", "provenance"]
    assert record["provenance"]["simulated"] is True


def test_the_json_template_makes_one_too(command: Command, tmp_path: Path) -> None:
    ended = command(
        "generate", job(tmp_path, prompt="education_dialogue_json", space="broad"), "-o", tmp_path / "run"
    )
    assert ended.code == 0, ended.err
    assert command("validate", tmp_path / "run").code == 0


def test_every_defect_that_the_simulator_knows_is_read(command: Command, tmp_path: Path) -> None:
    backends = {
        "default": {"type": "simulator", "faults": "defects=0.8,refusal=0.05,truncated=0.05,garbage=0.05"}
    }
    path = job(tmp_path, conversations=300, backends=backends, asks=6, top_up=True)
    ended = command("generate", path, "-o", tmp_path / "run", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["accepted"] == 300
    assert command("validate", tmp_path / "run").code == 0


def test_stdout_is_the_result_and_nothing_else(command: Command, tmp_path: Path) -> None:
    ended = command("generate", job(tmp_path), "-o", tmp_path / "run", "--json")
    assert set(json.loads(ended.out)) == {
        "run", "state", "planned", "accepted", "rejected", "failed", "pending", "calls", "tokens", "cost_usd",
    }  # fmt: skip
    assert "5/5" in ended.err
    status = command("status", tmp_path / "run", "--json")
    facts = json.loads(ended.out)
    assert facts["calls"].pop("now") == 5
    assert json.loads(status.out) == facts


def test_a_start_says_which_calls_are_its_own(command: Command, tmp_path: Path) -> None:
    path = job(tmp_path)
    for count, line in (
        (5, "5 made, 0 replayed"),
        (8, "8 made (3 now), 0"),
        (8, "8 made (0 now), 0"),
    ):
        ended = command("generate", path, "-n", str(count), "-o", tmp_path / "run")
        assert f"calls      {line}" in ended.out
    assert "calls      8 made, 0 replayed" in command("status", tmp_path / "run").out


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"space": "nowhere"}, "no such space (known:"),
        ({"space": "education_dialog"}, "did you mean 'education_dialogue'?"),
        ({"space": "./nowhere.yaml"}, "there is no such file"),
        ({"prompt": "education_dialoge"}, "did you mean 'education_dialogue'?"),
        ({"prompt": "./nowhere.j2"}, "there is no such file"),
        ({"name": "../escape"}, "$.name"),
        ({"name": ".."}, "$.name"),
        ({"backends": {"default": {"type": "openai", "model": "m"}}}, "OPENAI_API_KEY"),
        ({"backends": {"default": {"type": "gemini", "model": "m"}}}, "GOOGLE_API_KEY"),
        ({"backends": {"default": {"type": "simulator", "faults": "bananas=1"}}}, "bananas"),
    ],
)
def test_a_job_that_cannot_run_is_a_sentence_and_makes_nothing(
    command: Command, tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    ended = command("generate", job(tmp_path, **changes), "-o", tmp_path / "run")
    assert ended.code == (5 if "API_KEY" in said else 2), ended.err
    assert said in ended.err
    assert not (tmp_path / "run").exists()


TEMPLATES = {
    "escape": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "__class__"),
    "undefined": ("{{ topc }}", "did you mean 'topic'"),
    "syntax": ("{% if %}", "line 1"),
    "include": ("{% include '/etc/passwd' %}", "include"),
    "bomb": ("{{ 'a' * 10000000000 }}", "refused"),
    "empty": ("", "empty"),
}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_hostile_or_broken_template_is_exit_2(command: Command, tmp_path: Path, kind: str) -> None:
    text, said = TEMPLATES[kind]
    (tmp_path / "mine.j2").write_text(text)
    path = job(tmp_path, prompt="./mine.j2")
    for name in ("preview", "generate"):
        ended = command(name, path, *(["-o", tmp_path / "run"] if name == "generate" else []))
        assert ended.code == 2, ended.err
        assert "mine.j2" in ended.err
        assert said in ended.err


def test_a_topic_that_is_a_template_or_an_escape_code(command: Command, tmp_path: Path) -> None:
    """Jinja in a topic is text; a terminal escape code is refused with its place."""
    space = yaml.safe_load((ROOT / "preference_space" / "education_dialogue.yaml").read_text())
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(space | {"topics": ["{{ 7 * 7 }} {% raw %}"]}))
    path = job(tmp_path, space="./space.yaml")
    ended = command("preview", path, "-n", "1")
    assert ended.code == 0, ended.err
    assert "about {{ 7 * 7 }} {% raw %}." in ended.out
    ended = command("generate", path, "-o", tmp_path / "run", "--show", "1")
    assert ended.code == 0, ended.err
    assert "topic: {{ 7 * 7 }} {% raw %}" in ended.out
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(space | {"topics": ["red \x1b[31malert"]}))
    ended = command("preview", path)
    assert ended.code == 2
    assert "$.topics[0]" in ended.err
    assert "\x1b" not in ended.err


def test_model_text_cannot_drive_the_terminal(command: Command, tmp_path: Path) -> None:
    from edgen.core.text import escape_for_terminal

    assert escape_for_terminal("a\x1b[2Jb\u202ec\ttab\nline") == "a\\x1b[2Jb\\u202ec\ttab\nline"


def test_init_makes_a_folder_that_runs_and_overwrites_nothing(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "My project (1)"
    assert command("init", folder).code == 0
    assert sorted(p.name for p in folder.iterdir()) == ["job.yaml", "prompt.j2", "schemas", "space.yaml"]
    ended = command("generate", folder / "job.yaml", "-n", "3", "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    (folder / "job.yaml").write_text("mine")
    again = command("init", folder)
    assert again.code == 2
    assert "nothing is overwritten" in again.err
    assert (folder / "job.yaml").read_text() == "mine"


def test_preview_calls_nothing_and_shows_what_would_be_asked(command: Command) -> None:
    ended = command("preview", QUICKSTART, "-n", "2", "--json")
    shown = json.loads(ended.out)
    assert len(shown["previews"]) == 2
    for preview in shown["previews"]:
        assert preview["scenario"]["topic"] in preview["messages"][0]["content"]


def test_status_of_what_is_no_run(command: Command, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        ended = command("status", path)
        assert ended.code == 2
        assert f"{path}: there is no run here; `edgen generate JOB -o {path}` makes one." in ended.err
        assert ended.err == command("pairs", path, "--by", "oracle").err
    for arguments in (("status",), ("pairs", "--by", "oracle")):
        ended = command(*arguments, QUICKSTART)
        assert ended.code == 2
        assert (
            "quickstart.yaml: this is a file, not a run. A job's run is the folder outputs/<name>"
            in ended.err
        )


def test_status_of_a_ledger_whose_job_was_not_noted_yet(command: Command, tmp_path: Path) -> None:
    """A kill may come between the creation of the ledger and the note of its job."""
    command("generate", job(tmp_path), "-o", tmp_path / "run")
    (tmp_path / "run" / "job.yaml").unlink()
    assert command("status", tmp_path / "run").code == 0


def test_doctor_says_what_is_wrong(command: Command, tmp_path: Path) -> None:
    well = command("doctor", QUICKSTART)
    assert well.code == 0
    assert "answered in" in well.out
    backends = {"default": {"type": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}}
    ill = command("doctor", job(tmp_path, backends=backends), "--json")
    assert ill.code == 5
    checks = {row["check"]: row for row in json.loads(ill.out)["checks"]}
    assert checks["call"]["well"] is False
    assert "127.0.0.1:9" in checks["call"]["detail"]


def test_bad_usage_is_exit_2(command: Command) -> None:
    for arguments in (["generate"], ["generate", QUICKSTART, "-n", "0"], ["fly"], ["status", "--wings"]):
        assert command(*arguments).code == 2
    ended = command("generate", QUICKSTART, "--set", "nonsense")
    assert ended.code == 2
    assert "--set" in ended.err


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m edgen preview {QUICKSTART} -n 200 | head -n 1",
        shell=True, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.startswith("scenario 0")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_template_that_some_topics_break_is_found_before_anything_is_asked(
    command: Command, tmp_path: Path
) -> None:
    space = yaml.safe_load((ROOT / "preference_space" / "education_dialogue.yaml").read_text())
    topics = [{"value": f"Topic {i}", "level": "primary"} for i in range(50)] + ["A topic without a level"]
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(space | {"topics": topics}))
    (tmp_path / "mine.j2").write_text("About {{ topic }}\nfor {{ level }}.")
    ended = command(
        "generate", job(tmp_path, space="./space.yaml", prompt="./mine.j2"), "-o", tmp_path / "run"
    )
    assert ended.code == 2
    assert "mine.j2" in ended.err
    assert "line 2" in ended.err
    assert not (tmp_path / "run").exists()


def test_init_makes_a_folder_of_two_agents_that_runs_and_pairs(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    made = command("init", folder, "--protocol", "selfplay")
    assert made.code == 0, made.err
    names = {"job.yaml", "teacher.j2", "student.j2", "closing.j2", "oracle.j2", "space.yaml", "schemas"}
    assert {path.name for path in folder.iterdir()} == names
    assert all(f"./{name}" in (folder / "job.yaml").read_text() for name in names - {"job.yaml"})
    assert command("preview", folder / "job.yaml", "-n", "1").code == 0
    assert command("generate", folder / "job.yaml", "-o", tmp_path / "run", "-n", "3").code == 0
    assert command("pairs", tmp_path / "run", "--by", "oracle").code == 0
    kept = {path.name for path in (tmp_path / "run" / "inputs").iterdir()}
    assert kept == names - {"job.yaml", "schemas"}


ARMS = {
    "plain": {},
    "json": {"prompt": "education_dialogue_json"},
    "two": {"protocol": "selfplay", "prompt": None},
}


class TestArms:
    def job(self, folder: Path, **changes: object) -> Path:
        values = {
            "name": "t", "conversations": 6, "space": "education_dialogue", "prompt": "education_dialogue",
            "backends": {"default": {"type": "simulator"}}, "arms": ARMS,
        }  # fmt: skip
        path = folder / "job.yaml"
        path.write_text(json.dumps(values | changes))
        return path

    def test_each_is_a_run_over_the_same_scenarios(self, command: Command, tmp_path: Path) -> None:
        ended = command("generate", self.job(tmp_path), "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        facts = json.loads(ended.out)
        assert (facts["state"], facts["planned"], facts["accepted"], facts["pending"]) == (
            "complete",
            18,
            18,
            0,
        )
        seen = []
        for arm in ARMS:
            shards = (tmp_path / "run" / "arms" / arm / "shards").glob("conversations_*.json")
            records = [record for path in shards for record in json.loads(path.read_text())]
            assert {record["id"].partition("-")[0] for record in records} == {f"t.{arm}"}
            background = {r["provenance"]["scenario"]: r["background_info"] for r in records}
            seen.append(background)
        assert seen[0] == seen[1] == seen[2]
        assert command("validate", tmp_path / "run").code == 0
        assert command("doctor", tmp_path / "job.yaml").code == 0

    def test_one_that_was_killed_before_its_first_ledger_has_a_status(
        self, command: Command, tmp_path: Path
    ) -> None:
        command("generate", self.job(tmp_path), "-o", tmp_path / "run")
        for ledger in (tmp_path / "run").glob("arms/*/run.db*"):
            ledger.unlink()
        ended = command("status", tmp_path / "run")
        assert ended.code == 2
        assert "no arm of this run has started" in ended.err

    def test_one_more_arm_asks_only_what_is_new(self, command: Command, tmp_path: Path) -> None:
        command("generate", self.job(tmp_path), "-o", tmp_path / "run")
        more = self.job(tmp_path, arms=ARMS | {"other": {"backends": {"default": {"seed": 4}}}})
        facts = json.loads(command("generate", more, "-o", tmp_path / "run", "--json").out)
        before = {arm: facts["arms"][arm]["calls"]["made"] for arm in ARMS}
        assert facts["arms"]["other"]["calls"]["made"] == 6
        assert {arm: own["calls"]["now"] for arm, own in facts["arms"].items()} == {
            "plain": 0, "json": 0, "two": 0, "other": 6,
        }  # fmt: skip
        assert facts["calls"]["now"] == 6
        again = json.loads(command("generate", more, "-o", tmp_path / "run", "--json").out)
        assert {arm: again["arms"][arm]["calls"]["made"] for arm in ARMS} == before

    @pytest.mark.parametrize(
        ("arms", "complaint"),
        [
            ({"a b": {}}, "an arm's name is made of"),
            ({"a": {"seed": 3}}, "$.arms.a.seed: an arm cannot change this"),
            ({"a": {"promt": "x"}}, "$.arms.a.promt: unknown key"),
            ({"a": {"prompt": "nowhere"}}, "no such template"),
            ({"a": 3}, "$.arms.a"),
        ],
    )
    def test_a_bad_one_is_a_sentence_before_anything_is_made(
        self, command: Command, tmp_path: Path, arms: object, complaint: str
    ) -> None:
        ended = command("generate", self.job(tmp_path, arms=arms), "-o", tmp_path / "run")
        assert ended.code == 2
        assert complaint in ended.err
        assert not (tmp_path / "run").exists()

    def test_a_run_without_arms_is_not_mixed_with_one_that_has_them(
        self, command: Command, tmp_path: Path
    ) -> None:
        assert command("generate", self.job(tmp_path, arms={}), "-o", tmp_path / "plain").code == 0
        ended = command("generate", self.job(tmp_path), "-o", tmp_path / "plain")
        assert ended.code == 2
        assert "holds a run without arms" in ended.err
        assert command("generate", self.job(tmp_path), "-o", tmp_path / "armed").code == 0
        ended = command("generate", self.job(tmp_path, arms={}), "-o", tmp_path / "armed")
        assert ended.code == 2
        assert "holds a run with arms" in ended.err

    def test_one_that_falls_short_does_not_keep_the_next_from_being_made(
        self, command: Command, tmp_path: Path
    ) -> None:
        arms = {"bad": {"backends": {"default": {"faults": "refusal=1"}}}, "good": {}}
        ended = command("generate", self.job(tmp_path, arms=arms), "-o", tmp_path / "run", "--json")
        assert ended.code == 3
        assert "bad: 0 of 6" in ended.err
        facts = json.loads(ended.out)
        assert (facts["state"], facts["arms"]["good"]["accepted"]) == ("short", 6)

    def test_each_says_of_itself_how_it_ended(self, command: Command, tmp_path: Path) -> None:
        refusing = {"backends": {"default": {"faults": "refusal=1"}}}
        path = self.job(tmp_path, arms={"bad": refusing, "good": {}, "worse": refusing | {"asks": 1}})
        assert command("generate", path, "-o", tmp_path / "run").code == 3
        lines = command("status", tmp_path / "run").out.splitlines()
        last = [line.removeprefix("last       ") for line in lines if line.startswith("last")]
        assert [line.partition(" conv")[0] for line in last] == ["bad: 0 of 6", "worse: 0 of 6"]
        assert all(line.count("were accepted") == 1 for line in last)
        arms = [line for line in lines if line.startswith("arm")]
        assert [line.split()[2] for line in arms] == ["short,", "complete,", "short,"]
