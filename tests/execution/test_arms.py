"""Arms: only new requests are sent, and an arm may weight the space differently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from edgen.config import load_job
from edgen.core import resources
from edgen.core.errors import RunError
from edgen.planning.load import load_plans
from edgen.space import dump_space, load_space
from edgen.store.run_reader import RunReader
from tests.cli.command import Command

VALUES: dict[str, list[Any]] = {
    "topics": [{"value": "fractions", "subject": "mathematics"}, "rivers", "verbs"],
    "student_preferences": ["drawings", "songs"],
    "student_reactions": ["sulks", "shouts"],
    "teacher_preferences": ["lectures", "games"],
    "teacher_reactions": ["adapts", "stays as he is"],
}
ARMS = {"plain": {}, "json": {"prompt": "education_dialogue_json"}}
WEIGHED = {"plain": {}, "weighed": {"space": "./weighed.yaml"}}


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def space(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({"name": path.stem, **VALUES, **changes}))


def job(folder: Path, **changes: Any) -> Path:
    """Write a job next to two spaces with the same values; one of them has weights and another order."""
    space(folder / "even.yaml")
    space(folder / "weighed.yaml", topics=["verbs", *VALUES["topics"][:1], {"value": "rivers", "weight": 9}])
    values = {
        "name": "t", "seed": 3, "conversations": 30, "space": "./even.yaml", "design": "random",
        "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
    }  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(json.dumps(values | changes))
    return path


def generate(command: Command, path: Path, *more: str) -> dict[str, Any]:
    """Generate into `run` next to the job; return the arms' facts."""
    ended = command("generate", path, "-o", path.parent / "run", "--json", *more)
    assert ended.code == 0, ended.err
    arms: dict[str, Any] = json.loads(ended.out)["arms"]
    return arms


def calls(arms: dict[str, Any]) -> dict[str, int]:
    return {name: facts["calls"]["made"] for name, facts in arms.items()}


class TestOnlyWhatIsNewIsAsked:
    def test_an_arm_more(self, command: Command, tmp_path: Path) -> None:
        assert calls(generate(command, job(tmp_path, arms=ARMS))) == {"plain": 30, "json": 30}
        more = {**ARMS, "warm": {"backends": {"default": {"temperature": 1.1}}}}
        assert calls(generate(command, job(tmp_path, arms=more))) == {"plain": 30, "json": 30, "warm": 30}
        assert calls(generate(command, job(tmp_path, arms=more))) == {"plain": 30, "json": 30, "warm": 30}

    def test_twice_as_many(self, command: Command, tmp_path: Path) -> None:
        generate(command, job(tmp_path, arms=ARMS))
        with RunReader(tmp_path / "run") as reader:
            before = {(c.candidate.id, c.candidate.turns) for c in reader.conversations()}
        assert calls(generate(command, job(tmp_path, arms=ARMS), "-n", "60")) == {"plain": 60, "json": 60}
        with RunReader(tmp_path / "run") as reader:
            after = {(c.candidate.id, c.candidate.turns) for c in reader.conversations()}
        assert before < after

    def test_both_at_once_and_then_compared(self, command: Command, tmp_path: Path) -> None:
        generate(command, job(tmp_path, arms=ARMS, conversations=10))
        command("compare", tmp_path / "run")
        more = {**ARMS, "weighed": {"space": "./weighed.yaml"}}
        assert set(calls(generate(command, job(tmp_path, arms=more), "-n", "20")).values()) == {20}
        found = json.loads(command("compare", tmp_path / "run", "--json").out)
        assert [(arm["scenarios"], arm["paired"]) for arm in found["arms"]] == [
            (20, True),
            (20, True),
            (20, False),
        ]
        assert len(list((tmp_path / "run" / "comparisons").iterdir())) == 2


class TestWhatAnArmMayChange:
    def test_another_protocol_leaves_behind_what_only_the_jobs_has(self, tmp_path: Path) -> None:
        arms = {"one": {}, "talk": {"protocol": "selfplay"}, "again": {"protocol": "oneshot"}}
        _, plans = load_plans(job(tmp_path, arms=arms))
        assert {arm: set(plan.prompts) for arm, plan in plans.items()} == {
            "one": {"default"}, "talk": {"teacher", "student"}, "again": {"default"},
        }  # fmt: skip
        branching = {"protocol": "selfplay", "prompt": None, "branch": {}, "replicates": 2}
        back = {"talk": {}, "one": {"protocol": "oneshot", "prompt": "education_dialogue"}}
        _, plans = load_plans(job(tmp_path, **branching, arms=back))
        assert plans["one"].job.branch is None

    @pytest.mark.parametrize(
        ("arms", "said"),
        [
            ({"a": {"temperature": 1.2}}, "a.temperature: unknown key; it is a backend's: `backends: {default: {"),
            ({"a": {"promt": "x"}}, "$.arms.a.promt: unknown key (did you mean 'prompt'?)"),
            ({"a": {"zzz": 1}}, "$.arms.a.zzz: unknown key (known: space, protocol, family, prompt, prompts, "),
            ({"a": {}, "A": {}}, "$.arms.A: it differs from a only in case"),
            ({"a": {}, "lost": {"prompt": "nowhere"}}, "needed by: arm lost"),
            ({"a": {}, "bad": {"backends": {"default": {"faults": "refusl=1"}}}}, "$.arms.bad.backends.default.faults: there is no"),
        ],
    )  # fmt: skip
    def test_mistakes_name_the_arm(
        self, command: Command, tmp_path: Path, arms: dict[str, Any], said: str
    ) -> None:
        for arguments in (("preview",), ("generate", "-o", tmp_path / "run")):
            ended = command(arguments[0], job(tmp_path, arms=arms), *arguments[1:])
            assert ended.code == 2
            assert said in ended.err
            assert "resolved" not in ended.err


class TestOtherWeights:
    def test_the_arm_draws_by_them(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path, arms=WEIGHED, conversations=200)
        _, plans = load_plans(path)
        rivers = {
            arm: sum(plan.scenario(i)["topic"] == "rivers" for i in range(200)) for arm, plan in plans.items()
        }
        assert 45 <= rivers["plain"] <= 90, "a third"
        assert 145 <= rivers["weighed"] <= 180, "nine of eleven"

    def test_its_space_is_kept_with_the_run_and_the_run_can_be_made_from_that(
        self, command: Command, tmp_path: Path
    ) -> None:
        generate(command, job(tmp_path, arms=WEIGHED))
        run = tmp_path / "run"
        (tmp_path / "weighed.yaml").unlink()
        (tmp_path / "even.yaml").unlink()
        noted = load_job(run / "job.yaml")
        assert noted.arms["weighed"] == {"space": "inputs/space.weighed.yaml"}
        again = command("generate", run / "job.yaml", "-o", run, "--json")
        assert again.code == 0, again.err
        assert calls(json.loads(again.out)["arms"]) == {"plain": 30, "weighed": 30}

    def test_the_first_arm_may_be_the_one_that_differs(self, command: Command, tmp_path: Path) -> None:
        arms = {"weighed": WEIGHED["weighed"], "plain": {}}
        generate(command, job(tmp_path, arms=arms))
        run = tmp_path / "run"
        assert "weight" not in (run / "inputs" / "space.yaml").read_text()
        assert "weight" in (run / "arms" / "weighed" / "inputs" / "space.yaml").read_text()
        assert json.loads(command("compare", run, "--json").out)["baseline"] == "weighed"

    def test_no_topic_is_on_both_sides_of_any_arm(self, command: Command, tmp_path: Path) -> None:
        generate(command, job(tmp_path, arms=WEIGHED, split={"test": 0.3, "by": "topic"}))
        sides: dict[str, set[str]] = {"train": set(), "eval": set()}
        for path in (tmp_path / "run").glob("arms/*/shards/conversations_*.json"):
            side = sides["eval" if "eval" in path.name else "train"]
            side |= {record["background_info"]["topic"] for record in json.loads(path.read_bytes())}
        assert sides["eval"]
        assert not sides["train"] & sides["eval"]

    def test_it_is_compared_as_a_sample_of_its_own(self, command: Command, tmp_path: Path) -> None:
        generate(command, job(tmp_path, arms=WEIGHED))
        ended = command("compare", tmp_path / "run", "--prompts")
        assert ended.code == 0
        assert "run, no scenario shared: independent samples" in ended.out
        assert "weighed against plain (not paired: p by a permutation test" in ended.out
        assert "the difference in the mix of scenarios" in ended.out.replace("\n  ", " ")
        assert "the same in all arms" in ended.out, "templates are shown with one scenario"

    def test_whoever_reads_the_arms_together_is_told(self, command: Command, tmp_path: Path) -> None:
        generate(command, job(tmp_path, arms=WEIGHED))
        for arguments in (
            ("pairs", tmp_path / "run", "--by", "oracle"),
            ("export", tmp_path / "run", "--to", "ed", "-o", tmp_path / "out"),
        ):
            ended = command(*arguments)
            assert ended.code == 2
            assert "arm weighed has other weights in its space" in ended.err
        with RunReader(tmp_path / "run" / "arms" / "weighed") as reader:
            assert reader.accepted == 30
        with pytest.raises(RunError, match="has other weights in its space"):
            RunReader(tmp_path / "run")

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            (
                {"topics": ["fractions", "rivers", "verbs"]},
                "its values of topic are not those of the job's space ('fractions'",
            ),
            ({"topics": [*VALUES["topics"], "oceans"]}, "('oceans' is in one of them only"),
            ({"teacher_reactions": ["adapts"]}, "its values of teacher_reaction are not those"),
        ],
    )
    def test_other_values_are_refused(
        self, command: Command, tmp_path: Path, changes: dict[str, Any], said: str
    ) -> None:
        path = job(tmp_path, arms=WEIGHED)
        space(tmp_path / "weighed.yaml", **changes)
        for name in ("generate", "preview"):
            ended = command(name, path, *(("-o", tmp_path / "run") if name == "generate" else ()))
            assert ended.code == 2
            assert "$.arms.weighed.space" in ended.err
            assert said in ended.err
        assert not (tmp_path / "run").exists()

    def test_weights_do_nothing_in_a_balanced_design(self, command: Command, tmp_path: Path) -> None:
        ended = command("generate", job(tmp_path, arms=WEIGHED, design="balanced"), "-o", tmp_path / "run")
        assert ended.code == 2
        assert "$.arms.weighed.space" in ended.err
        assert "design: random" in ended.err
        same = {"plain": {}, "same": {"space": "./even.yaml", "prompt": "education_dialogue_json"}}
        generate(command, job(tmp_path, arms=same, design="balanced"))
        with RunReader(tmp_path / "run") as reader:
            assert reader.accepted == 60

    def test_a_dimension_of_an_open_space_may_weigh_otherwise(self, command: Command, tmp_path: Path) -> None:
        space = load_space(resources.find("preference_space", "math_misconceptions"))
        curious = "curious, and asks why all the time"
        learners = [
            structs.replace(entry, weight=9.0 if entry.value == curious else 1.0)
            for entry in space["learner"].entries
        ]
        (tmp_path / "curious.yaml").write_text(dump_space(space.replace_entries("learner", tuple(learners))))
        path = job(
            tmp_path, space="math_misconceptions", conversations=4, protocol="selfplay", prompt=None,
            prompts={"tutor": "math_misconceptions_tutor", "learner": "math_misconceptions_learner"},
            arms={"plain": {}, "curious": {"space": "./curious.yaml"}},
        )  # fmt: skip
        generate(command, path)
        shares = {}
        for arm, plan in load_plans(path)[1].items():
            scenarios = [plan.scenario(index) for index in range(120)]
            with RunReader(tmp_path / "run" / "arms" / arm) as reader:
                assert [one.scenario.values for one in reader.conversations()] == [
                    one.values for one in scenarios[:4]
                ]
            shares[arm] = sum(one["learner"] == curious for one in scenarios) / 120
            fits = {one.value: one.when for one in space["misconception"].entries}
            assert all(one["topic"] in fits[one["misconception"]]["topic"] for one in scenarios)
        assert 0.08 <= shares["plain"] <= 0.27, "one of six"
        assert 0.52 <= shares["curious"] <= 0.76, "nine of fourteen"
        assert "curious against plain (not paired" in command("compare", tmp_path / "run").out

    def test_a_space_that_is_not_there(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path, arms={"plain": {}, "lost": {"space": "./lost.yaml"}})
        ended = command("generate", path, "-o", tmp_path / "run")
        assert ended.code == 2
        assert "lost.yaml" in ended.err
