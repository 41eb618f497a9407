"""`edgen compare` on the command line: it finds planted differences, stores results, and
reports mistakes in one message."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from edgen.cli.app import app
from edgen.core.errors import LockedError
from edgen.evaluation.comparison.run_arms import open_comparison, store
from edgen.store.run_folder import RunFolder
from tests.cli.command import Command, call, get_command

SIMULATOR = {"type": "simulator"}
PRICED = SIMULATOR | {"price": {"prompt": 1.0, "completion": 2.0}}


def faults(spec: str, **more: Any) -> dict[str, Any]:
    return {"backends": {"default": {"faults": spec, **more}}}


def job(folder: Path, **changes: Any) -> Path:
    values: dict[str, Any] = {
        "name": "t", "seed": 3, "conversations": 40, "space": "education_dialogue", "asks": 1,
        "prompt": "education_dialogue", "backends": {"default": SIMULATOR},
    }  # fmt: skip
    path = folder / f"{changes.pop('file', 'job')}.yaml"
    path.write_text(json.dumps({k: v for k, v in (values | changes).items() if v is not None}))
    return path


def generate(command: Command, folder: Path, into: str = "run", **changes: Any) -> Path:
    ended = command("generate", job(folder, **changes), "-o", folder / into)
    assert ended.code in (0, 3), ended.err
    return folder / into


def compare(command: Command, *arguments: str | Path) -> Any:
    ended = command("compare", *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def metric(comparison: Any, name: str) -> Any:
    return next(each for each in comparison["metrics"] if each["name"] == name)


ARMS = {
    "published": {},
    "json": {"prompt": "education_dialogue_json"},
    "refusing": faults("refusal=0.3"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a run that no test changes."""
    folder = tmp_path_factory.mktemp("compare")
    assert call("generate", job(folder, arms=ARMS), "-o", folder / "run") in (0, 3)
    return folder / "run"


class TestPlanted:
    def test_more_refusals_are_found(self, command: Command, tmp_path: Path) -> None:
        """2% against 14% of 150 scenarios."""
        arms = {"calm": faults("refusal=0.02"), "refusing": faults("refusal=0.14")}
        run = generate(command, tmp_path, conversations=150, arms=arms)
        found = compare(command, run)
        for name, sign in (("accepted", -1), ("rejected_refused", 1)):
            (difference,) = metric(found, name)["differences"]
            assert difference["low"] * sign > 0, name
            assert difference["high"] * sign > 0, name
            assert difference["p_holm"] < 0.05, name
            assert difference["n"] == 150
        assert found["shared"] == 150
        assert found["arms"][1]["changes"] == {"backends.default.faults": "refusal=0.14"}

    @pytest.mark.only_long
    def test_with_more_asks_they_show_in_the_calls(self, command: Command, tmp_path: Path) -> None:
        """The arms' simulators have different seeds, so their draws are independent."""
        arms = {"calm": faults("refusal=0.02"), "refusing": faults("refusal=0.14", seed=9)}
        run = generate(command, tmp_path, conversations=200, arms=arms, asks=3)
        found = compare(command, run)
        (calls,) = metric(found, "calls")["differences"]
        assert 0 < calls["low"] < calls["high"]
        assert calls["p_holm"] < 0.05
        (accepted,) = metric(found, "accepted")["differences"]
        assert accepted["p"] > 0.1


class TestArms:
    @pytest.fixture
    def run(self, made: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(made, tmp_path / "run"))

    def test_what_cannot_be_followed_is_refused_first(
        self, command: Command, made: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ended = command("compare", made, "--role", "Tutor=Agent")
        assert (ended.code, "--role names a role of a data set" in ended.err) == (2, True)
        may = os.access  # a read-only folder
        monkeypatch.setattr(
            os, "access", lambda path, mode, **more: mode != os.W_OK and may(path, mode, **more)
        )
        ended = command("compare", made)
        assert ended.code == 2
        assert f"{made} cannot be written; name a file elsewhere with -o." in ended.err

    def test_all_are_compared_with_the_first_and_it_is_stored(self, command: Command, run: Path) -> None:
        found = compare(command, run)
        assert found["baseline"] == "published"
        assert [difference["arm"] for difference in metric(found, "turns")["differences"]] == [
            "json",
            "refusing",
        ]
        stored = json.loads((run / "comparisons" / "published-vs-json-vs-refusing.json").read_bytes())
        assert {key: value for key, value in stored.items() if key != "sha256"} == found
        # The ledger's counts, from another command.
        status = json.loads(command("status", run, "--json").out)["arms"]
        for arm in found["arms"]:
            assert arm["accepted"] == status[arm["label"]]["accepted"]
            assert arm["rejected"] == status[arm["label"]]["rejected"]
            assert arm["tokens"] == sum(status[arm["label"]]["tokens"].values())
        records = (run / "arms" / "json" / "shards").glob("conversations_*.json")
        turns = [len(record["conversation"]) for path in records for record in json.loads(path.read_bytes())]
        assert metric(found, "turns")["arms"]["json"]["value"] == pytest.approx(
            sum(turns) / len(turns), rel=1e-5
        )
        assert not list((run / "comparisons").glob(".*")), "nothing half written"

    def test_a_changed_letter_in_the_stored_file_is_named(self, command: Command, run: Path) -> None:
        compare(command, run)
        (file,) = (run / "comparisons").glob("*.json")
        assert command("validate", run).code == 0
        data = file.read_bytes()
        for place in (data.index(b'"published"') + 1, data.index(b'"value": ') + 9, data.rindex(b'"') - 1):
            old = data[place]
            new = {b"9": b"8"}.get(bytes([old]), b"9") if chr(old).isdigit() else b"q"
            file.write_bytes(data[:place] + new + data[place + 1 :])
            found = command("validate", run)
            assert found.code != 0
            assert "digest" in found.out + found.err
            assert file.name in found.out + found.err
        file.write_bytes(data)
        assert command("validate", run).code == 0

    def test_some_of_them_in_the_order_named(self, command: Command, run: Path) -> None:
        found = compare(command, run, "--arms", "refusing", "published")
        assert (found["baseline"], len(found["arms"])) == ("refusing", 2)
        assert (run / "comparisons" / "refusing-vs-published.json").exists()

    @pytest.mark.parametrize(
        "spelled",
        [
            ("--arms", "refusing", "published"),
            ("--arms", "refusing", "--arms", "published"),
            ("--arms", "refusing,published"),
            ("--arms=refusing,", "published"),
            ("--arms=refusing", "--arms=published"),
        ],
    )
    def test_their_names_can_be_spelled_in_several_ways(self, spelled: tuple[str, ...]) -> None:
        read = get_command(app).commands["compare"].make_context("compare", ["run", *spelled])
        assert (read.params["runs"], read.params["arms"]) == (("run",), ("refusing", "published"))

    def test_for_a_person(self, command: Command, run: Path) -> None:
        ended = command("compare", run)
        assert ended.code == 0
        assert max(map(len, ended.out.splitlines()[:-1])) <= 80
        for said in ("json against published (paired by scenario)", "outcomes", "differences are tested",
                     "All arms are simulated", "no price", "say exactly the same"):  # fmt: skip
            assert said in ended.out.replace("\n  ", " ")

    def test_prompts(self, command: Command, run: Path) -> None:
        found = compare(command, run, "--prompts")
        (difference,) = found["prompts"]
        assert (difference["arm"], difference["use"], difference["scenario"]) == ("json", "default", 0)
        assert difference["diff"].startswith("--- published\n+++ json\n@@")
        shown = command("compare", run, "--arms", "published", "refusing", "--prompts").out
        assert "the same in all arms" in shown
        assert "+++ json" in command("compare", run, "--prompts").out

    def test_another_place_for_the_result(self, command: Command, run: Path, tmp_path: Path) -> None:
        found = compare(command, run, "-o", tmp_path / "found.json")
        assert json.loads((tmp_path / "found.json").read_bytes()) == found
        assert not (run / "comparisons").exists()
        ended = command("compare", run, "-o", tmp_path / "no" / "such" / "place.json")
        assert ended.code == 2
        assert "place.json" in ended.err
        assert command("compare", run, "-o", tmp_path).code == 2

    def test_a_cost_with_a_price(self, command: Command, tmp_path: Path) -> None:
        run = generate(command, tmp_path, "priced", backends={"default": PRICED}, arms=ARMS)
        found = compare(command, run)
        value = metric(found, "cost")["arms"]["refusing"]
        arm = found["arms"][2]
        assert value["value"] == pytest.approx(arm["cost_usd"] / arm["accepted"], rel=1e-5)
        assert metric(found, "cost")["differences"][1]["low"] > 0
        assert found["not_compared"] == []

    def test_answers_of_an_earlier_form_are_said(self, command: Command, tmp_path: Path, run: Path) -> None:
        arms = {**ARMS, "json": {"prompt": "education_dialogue"}}
        generate(command, tmp_path, arms=arms)
        found = compare(command, run)
        assert any(
            caveat.startswith("The ledger of json holds answers of an earlier form")
            for caveat in found["caveats"]
        )

    def test_two_protocols(self, command: Command, tmp_path: Path) -> None:
        other = {"protocol": "selfplay"}
        run = generate(command, tmp_path, "talks", conversations=12, arms={"one": {}, "two": other})
        found = compare(command, run, "--prompts")
        assert metric(found, "probability")["differences"][0]["value"] is None
        assert "probability" in [each["what"] for each in found["not_compared"]]
        assert metric(found, "calls")["differences"][0]["low"] > 5
        assert {each["use"] for each in found["prompts"]} == {"default", "teacher", "student"}
        assert set(found["arms"][1]["changes"]) == {
            "protocol", "prompt", "prompts.teacher", "prompts.student"
        }  # fmt: skip

    def test_prompts_that_differ_in_a_line_separator(self, command: Command, tmp_path: Path) -> None:
        for name, between in (("one", "\n"), ("other", "\u2028")):
            (tmp_path / f"{name}.j2").write_text(f"Teach {{{{ topic }}}}.{between}Be brief.")
        arms = {name: {"prompt": f"./{name}.j2"} for name in ("one", "other")}
        run = generate(command, tmp_path, "lines", conversations=3, arms=arms)
        (difference,) = compare(command, run, "--prompts")["prompts"]
        assert "\u2028Be brief." in difference["diff"]

    def test_only_refusals_in_one_arm(self, command: Command, tmp_path: Path) -> None:
        run = generate(command, tmp_path, "bad", arms={"good": {}, "bad": faults("refusal=1")})
        found = compare(command, run)
        assert metric(found, "accepted")["differences"][0]["value"] == -1
        assert metric(found, "turns")["differences"][0]["value"] is None
        assert command("compare", run).code == 0


class TestRuns:
    def test_runs_of_the_same_scenarios(self, command: Command, tmp_path: Path) -> None:
        a = generate(command, tmp_path, "a", conversations=40)
        b = generate(command, tmp_path, "b", conversations=60, prompt="education_dialogue_json", name="other")
        found = compare(command, a, b)
        assert ([arm["label"] for arm in found["arms"]], found["shared"]) == (["a", "b"], 40)
        assert found["arms"][1]["changes"]["conversations"] == "60"
        assert (a / "comparisons" / "a-vs-b.json").exists()
        assert not (b / "comparisons").exists()

    def test_folders_of_one_name_are_told_apart(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "x").mkdir()
        (tmp_path / "y").mkdir()
        a = generate(command, tmp_path / "x")
        b = generate(command, tmp_path / "y", prompt="education_dialogue_json")
        assert [arm["label"] for arm in compare(command, a, b)["arms"]] == ["x_run", "y_run"]

    def test_a_run_with_arms_and_one_without(self, command: Command, tmp_path: Path) -> None:
        a = generate(command, tmp_path, "a")
        b = generate(command, tmp_path, "b", arms=ARMS)
        found = compare(command, a, b, "--arms", "a", "b.json")
        assert [arm["label"] for arm in found["arms"]] == ["a", "b.json"]
        found = compare(command, b / "arms" / "json", b / "arms" / "refusing")
        assert [arm["label"] for arm in found["arms"]] == ["json", "refusing"]

    def test_a_later_form_of_the_job_puts_its_comparisons_aside(
        self, command: Command, tmp_path: Path
    ) -> None:
        a = generate(command, tmp_path, "a")
        b = generate(command, tmp_path, "b", prompt="education_dialogue_json")
        compare(command, a, b)
        generate(command, tmp_path, "a", prompt="education_dialogue_json")
        assert not (a / "comparisons").exists()
        assert (a / "previous" / "1" / "comparisons" / "a-vs-b.json").exists()


class TestMistakes:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"seed": 4}, "other seed (4 here, 3 in"),
            ({"design": "random"}, "other design (random here, balanced in"),
            ({"space": "broad"}, "other space ("),
        ],
    )
    def test_runs_that_share_no_scenarios(
        self, command: Command, tmp_path: Path, changes: dict[str, Any], said: str
    ) -> None:
        a = generate(command, tmp_path, "a", conversations=3)
        b = generate(command, tmp_path, "b", conversations=3, **changes)
        ended = command("compare", a, b)
        assert ended.code == 2
        assert "shares no scenarios" in ended.err
        assert said in ended.err
        assert not (a / "comparisons").exists()

    def test_names(self, command: Command, tmp_path: Path) -> None:
        run = generate(command, tmp_path, conversations=3, arms=ARMS)
        for arguments, said in (
            (
                ("--arms", "publishd", "json"),
                "there is no arm 'publishd' (did you mean 'published'?); there are published, json, refusing.",
            ),
            (("--arms", "json", "json"), "'json' is named twice"),
            (("--arms", "json"), "name at least two"),
            (("--arms", "zzz", "json"), "no arm 'zzz' (known: published, json, refusing).\n"),
            (("published", "refusing"), "did you mean --arms published refusing?"),
            (("json",), "did you mean --arms published json?"),
            (("--arms", "--prompts"), "there is no arm '--prompts'"),
        ):
            ended = command("compare", run, *arguments)
            assert ended.code == 2
            assert said in ended.err, ended.err

    def test_a_run_behind_the_arms(self, command: Command, tmp_path: Path) -> None:
        ended = command("compare", "--arms", "published", "json", tmp_path / "run")
        assert ended.code == 2
        assert "name a run, before the options: edgen compare RUN --arms A B" in ended.err

    def test_an_arm_made_under_another_space(self, command: Command, tmp_path: Path) -> None:
        run = generate(command, tmp_path, conversations=3, arms=ARMS)
        (run / "digests.json").unlink()  # as after an older edgen: the copy is accepted without a check
        space = run / "inputs" / "space.yaml"
        space.write_text(space.read_text().replace("lecture", "lectures", 1))
        ended = command("compare", run)
        assert ended.code == 2
        assert "was made with another space" in ended.err

    def test_nobody_makes_the_run_anew_before_it_is_stored(self, command: Command, tmp_path: Path) -> None:
        run = generate(command, tmp_path, conversations=3, arms=ARMS)
        with open_comparison([run]) as comparison:
            with pytest.raises(LockedError), RunFolder(run).lock_for_writing():
                pass
            store(comparison, run)
        with RunFolder(run).lock_for_writing():
            pass

    def test_nothing_to_compare_with(self, command: Command, tmp_path: Path) -> None:
        run = generate(command, tmp_path, conversations=3)
        ended = command("compare", run)
        assert ended.code == 2
        assert "one arm or none" in ended.err
        ended = command("compare", run, tmp_path / "x" / ".." / "run")
        assert ended.code == 2
        assert "named twice" in ended.err
        ended = command("compare", run, tmp_path / "nowhere")
        assert ended.code == 2
        assert "there is no run here" in ended.err
        assert command("compare").code == 2

    def test_an_arm_that_was_not_begun(self, command: Command, tmp_path: Path) -> None:
        run = generate(command, tmp_path, conversations=3, arms=ARMS)
        for ledger in (run / "arms" / "refusing").glob("run.db*"):
            ledger.unlink()
        ended = command("compare", run)
        assert ended.code == 3
        assert "refusing has no answers yet" in ended.err
        assert "--arms published json" in ended.err
        assert command("compare", run, "--arms", "published", "json").code == 0

    def test_an_empty_run(self, command: Command, tmp_path: Path) -> None:
        """Every call fails at once: the run stops without any conversation."""
        a = generate(command, tmp_path, "a", conversations=3)
        broken = {"default": SIMULATOR | {"faults": "401=1"}}
        ended = command("generate", job(tmp_path, conversations=3, backends=broken), "-o", tmp_path / "b")
        assert ended.code == 5
        ended = command("compare", a, tmp_path / "b")
        assert ended.code == 3, ended.err
        assert "nothing is settled" in ended.err

    def test_a_run_still_going(self, command: Command, tmp_path: Path) -> None:
        run = generate(command, tmp_path, conversations=3, arms=ARMS)
        with RunFolder(run).lock_for_writing():
            ended = command("compare", run)
        assert ended.code == 6
        assert "works on this run" in ended.err

    def test_an_arm_left_behind_by_a_changed_job(self, command: Command, tmp_path: Path) -> None:
        run = generate(command, tmp_path, conversations=3, arms=ARMS)
        (run / "digests.json").unlink()  # as after an older edgen: the copy is accepted without a check
        noted = run / "job.yaml"
        noted.write_text(noted.read_text().replace("seed: 3\n", "seed: 4\n", 1))
        ended = command("compare", run)
        assert ended.code == 2
        assert "was made with another seed" in ended.err
