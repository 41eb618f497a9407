"""`edgen pairs --credit` and `--min-turns-left` on the command line: the evidence of each turn's label."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from edgen.core.pair import turns_left
from edgen.generation.arms import GenerateOptions, generate
from edgen.planning.load import JobSource
from edgen.runtime.control import Control
from edgen.store.ledger import LedgerReader
from edgen.store.run_reader import RunReader
from tests import ROOT, fork_server
from tests.cli.command import Command, Ended, call

JOB = ROOT / "jobs" / "selfplay.yaml"
ROLLOUTS = ("--credit", "rollouts", "--rollouts", "2")


BACKENDS = "backends={default: {type: simulator, planted: 5, max_tokens: 400}}"


async def generate_run(folder: Path, *changes: str, part: range | None = None) -> None:
    fixed = (
        "design=balanced",
        "conversations=4",
        "replicates=3",
        BACKENDS,
    )  # the tests rely on these scenarios
    source = JobSource.of(JOB, (*fixed, *changes))
    await generate(source, GenerateOptions(output=folder, scenarios=part), Control())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a run of two agents that no test changes: each scenario has a conversation and
    two branches of it."""
    folder = tmp_path_factory.mktemp("credit") / "run"
    asyncio.run(generate_run(folder))
    return folder


@pytest.fixture(scope="module")
def calm(made: Path) -> Path:
    """Copy the run and compare its undisturbed rollouts by the judge; no test changes the copy."""
    folder = Path(shutil.copytree(made, made.with_name("calm")))
    assert call("pairs", folder, "--by", "oracle", *ROLLOUTS) == 0
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def pairs(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "pairs" / "pairs.jsonl").read_text().splitlines()]


def facts(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def left(folder: Path) -> dict[str, int]:
    """Return the number of turns after the branch point of each pair, by the pair's id."""
    with RunReader(folder) as reader:
        return {one.pair.id: turns_left(one.a, one.b, one.pair.prefix_turns) for one in reader.compared()}


class TestTurnsLeft:
    def test_pairs_near_their_end_are_neither_judged_nor_labelled_and_counted(
        self, command: Command, run: Path
    ) -> None:
        whole = facts(command("pairs", run, "--by", "oracle", "--json"))
        follow = left(run)
        near = sum(count < 4 for count in follow.values())
        assert 0 < near < len(follow)
        shutil.rmtree(run / "pairs")
        some = facts(command("pairs", run, "--by", "oracle", "--min-turns-left", "4", "--json"))
        assert some["left_out"]["turns_left"] == near
        assert some["planned"] == whole["planned"] - near
        assert some["calls"]["made"] == whole["calls"]["made"] - 2 * near
        assert len(pairs(run)) == len(follow)
        for line in pairs(run):
            assert (line["left_out"] == "turns_left") is (follow[line["id"]] < 4)

    def test_without_it_nothing_changes(self, command: Command, run: Path) -> None:
        command("pairs", run, "--by", "oracle")
        before = (run / "pairs" / "pairs.jsonl").read_bytes()
        command("pairs", run, "--by", "oracle", "--min-turns-left", "0")
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == before

    def test_it_can_be_asked_of_an_export_as_well(self, command: Command, run: Path, tmp_path: Path) -> None:
        command("pairs", run, "--by", "probability")
        labelled = {line["id"] for line in pairs(run) if line["label"]}
        near = sum(count < 6 for name, count in left(run).items() if name in labelled)
        assert near
        for number, format_ in enumerate(("trl-dpo", "mtpo", "trl-conversation")):
            given = ("export", run, "--to", format_, "-o", tmp_path / str(number), "--min-turns-left", "6")
            assert facts(command(*given, "--json"))["left_out"]["turns_left"] == near
        card = (tmp_path / "0" / "README.md").read_text()
        assert f"| turns_left | {near} | after the two conversations part, fewer turns" in card

    def test_what_is_wrong_is_said(self, command: Command, run: Path, tmp_path: Path) -> None:
        assert command("pairs", run, "--by", "oracle", "--min-turns-left", "-1").code == 2
        ended = command("pairs", run, "--by", "oracle", "--set", "pairs.min_turns_left=-1")
        assert (ended.code, "$.pairs.min_turns_left" in ended.err) == (2, True)
        ended = command("export", run, "--to", "ed", "-o", tmp_path / "ed", "--min-turns-left", "2")
        assert (ended.code, "ed does not take --min-turns-left; " in ended.err) == (2, True)
        ended = command("pairs", run, "--by", "oracle", "--min-turns-left", "900")
        assert ended.code == 3
        assert "A lower --min-turns-left" in ended.err
        assert Counter(line["left_out"] for line in pairs(run)) == {"turns_left": len(pairs(run))}


def signal_of(line: dict[str, Any], by: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in line["signals"]["rollouts"] if one["by"] == by)
    return found


def played(folder: Path) -> dict[tuple[int, str], dict[str, Any]]:
    """Return the records in the run's ledger of rollouts."""
    (ledger,) = (folder / "pairs" / "rollouts").glob("*.db")
    with LedgerReader(ledger) as view:
        return {
            (index, task): json.loads(record)
            for index in range(4)
            for task, (_, _, record) in view.read_outcomes(index).items()
            if record is not None
        }


def stored(folder: Path) -> set[tuple[Any, ...]]:
    """Return every paid answer except those of conversations."""
    found = set()
    for ledger in sorted((folder / "pairs").glob("*/*.db")):
        with contextlib.closing(sqlite3.connect(ledger)) as connection:
            rows = connection.execute("SELECT scenario, task, step, attempt, text FROM replies")
            found |= {(ledger.parent.name, *row) for row in rows}
    return found


class TestRollouts:
    def test_a_label_rests_on_the_mean_of_k_rollouts_of_each_response(
        self, command: Command, run: Path
    ) -> None:
        made = facts(command("pairs", run, "--by", "probability", *ROLLOUTS, "--json"))
        (status,) = made["rollouts"]
        assert (made["credit"], made["k"]) == ("rollouts", 2)
        rollouts = played(run)
        assert status["planned"] == len(rollouts) == 2 * 4 * 3
        with RunReader(run) as reader:
            for line, compared in zip(pairs(run), reader.compared(), strict=True):
                at = line["prefix_turns"] + 1
                means = []
                for side in (compared.a, compared.b):
                    own = [rollouts[line["scenario"], f"{side.name}@{at}.{n}"] for n in range(2)]
                    for one in own:
                        given = [(turn["role"], turn["text"]) for turn in one["turns"][:at]]
                        assert given == [(turn.role, turn.text) for turn in side.turns[:at]]
                    means.append(fmean(one["probability"] for one in own))
                found = signal_of(line, "probability")
                assert (found["k"], found["counted"]) == (2, 2)
                assert (found["a"], found["b"]) == pytest.approx(means)
                assert found["p"] == pytest.approx(0.5 + (means[0] - means[1]) / 2)
                assert found["se"] >= 0
                if line["label"] is not None:
                    assert (line["label"]["k"], line["label"]["se"]) == (2, found["se"])
                    assert line["label"]["margin"] == pytest.approx(abs(means[0] - means[1]))
        texts = {
            (index, task.rpartition(".")[0], str(one["turns"])) for (index, task), one in rollouts.items()
        }
        assert len(texts) == len(rollouts)  # two rollouts of one response differ

    def test_a_judge_compares_rollouts_in_both_orders(self, command: Command, run: Path) -> None:
        made = facts(command("pairs", run, "--by", "oracle", *ROLLOUTS, "--json"))
        assert made["planned"] + made["left_out"].get("identical", 0) * 2 == 2 * len(pairs(run))
        assert made["calls"]["made"] == 2 * made["judged"]
        for line in pairs(run):
            assert line["signals"]["oracle"] == []
            found = signal_of(line, "oracle")
            assert found["p"] in (0, 0.25, 0.5, 0.75, 1)
            assert found["a"] == found["p"] == 1 - found["b"]
            if line["label"]:
                assert line["label"]["judge"] == found["judge"] == made["judge"]
                assert 0 < line["label"]["margin"] < 1
                ahead = line["a"]["strength"]["value"] > line["b"]["strength"]["value"]
                assert line["label"]["chosen"] == ("a" if ahead else "b")

    def test_whole_verdicts_come_back_without_a_call(self, command: Command, run: Path) -> None:
        command("pairs", run, "--by", "oracle", "--credit", "whole")
        before = (run / "pairs" / "pairs.jsonl").read_bytes()
        command("pairs", run, "--by", "oracle", *ROLLOUTS)
        assert all(line["signals"]["oracle"] for line in pairs(run) if line["left_out"] != "identical")
        asked = stored(run)
        command("pairs", run, "--by", "oracle", "--credit", "whole")
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == before
        assert stored(run) == asked

    def test_what_it_takes_is_said_before_and_nothing_is_asked_twice(
        self, command: Command, run: Path
    ) -> None:
        asked = ("pairs", run, "--by", "oracle", *ROLLOUTS, "--json")
        needs = facts(command(*asked, "--dry-run"))
        assert not (run / "pairs").exists()
        made = facts(command(*asked))
        assert made["left_out"].keys() <= {"tie", "identical"}
        first, calls = (run / "pairs" / "pairs.jsonl").read_bytes(), len(stored(run))
        assert needs["rollouts"]["to_play"] == len(played(run))
        assert needs["calls"]["at_most"] >= calls
        assert 0.6 * calls <= needs["calls"]["expected"] <= 1.6 * calls
        again = facts(command(*asked, "--dry-run"))
        assert (again["rollouts"]["there"], again["calls"]["expected"]) == (needs["rollouts"]["to_play"], 0)
        facts(command(*asked))
        assert (len(stored(run)), (run / "pairs" / "pairs.jsonl").read_bytes()) == (calls, first)
        facts(command("pairs", run, "--by", "oracle", "--credit", "rollouts", "--rollouts", "3", "--json"))
        assert len(stored(run)) > calls

    def test_the_same_bytes_however_many_calls_go_at_once(
        self, command: Command, run: Path, calm: Path
    ) -> None:
        alone = ("--set", "limits.in_flight=1")
        facts(command("pairs", run, "--by", "oracle", *ROLLOUTS, *alone, "--json"))
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == (calm / "pairs" / "pairs.jsonl").read_bytes()
        assert stored(run) == stored(calm)

    def test_a_budget_stops_it_and_it_goes_on(self, command: Command, run: Path, calm: Path) -> None:
        used = json.loads(command("status", run, "--json").out)["tokens"]
        cap = sum(used.values()) + 20_000
        ended = command("pairs", run, "--by", "oracle", *ROLLOUTS, "--set", f"limits.max_tokens={cap}")
        assert (ended.code, (run / "pairs" / "pairs.jsonl").exists()) == (4, False)
        status = json.loads(command("status", run, "--json").out)
        (rollouts,) = status["rollouts"]
        assert 0 < sum(rollouts["tokens"].values()) <= 20_000
        assert rollouts["pending"] > 0
        before = stored(run)
        facts(command("pairs", run, "--by", "oracle", *ROLLOUTS, "--json"))
        assert before < stored(run) == stored(calm)
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == (calm / "pairs" / "pairs.jsonl").read_bytes()

    def test_a_rollout_that_speaks_to_a_judge_takes_the_label_away(self, command: Command, run: Path) -> None:
        telling = "backends.teacher={type: simulator, planted: 5, max_tokens: 400, faults: tells_judge=1}"
        ended = command("pairs", run, "--by", "oracle", *ROLLOUTS, "--set", telling)
        assert ended.code == 3
        lines = pairs(run)
        assert {line["left_out"] for line in lines} <= {"judge_directed", "identical"}
        assert any("judge_directed" in line["signals"] for line in lines)

    def test_python_says_the_same(self, run: Path, calm: Path) -> None:
        import edgen

        made = edgen.open(run).pairs(by="oracle", credit="rollouts", rollouts=2, progress=False)
        assert [pair.label and pair.label.k for pair in made] == [
            line["label"] and line["label"]["k"] for line in pairs(calm)
        ]
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == (calm / "pairs" / "pairs.jsonl").read_bytes()

    def test_no_key_is_needed_to_say_what_it_takes(
        self, command: Command, run: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        service = (
            "backends.default={type: openai, model: m, base_url: 'https://api.openai.com/v1', max_tokens: 9}"
        )
        asked = ("pairs", run, "--by", "oracle", *ROLLOUTS, "--set", service)
        needs = facts(command(*asked, "--dry-run", "--json"))
        assert needs["rollouts"]["to_play"] == 2 * 4 * 3
        ended = command(*asked)
        assert (ended.code, "OPENAI_API_KEY" in ended.err) == (5, True)
        assert not [*run.glob("pairs/**/*.db")]

    def test_rollouts_without_an_answer_are_asked_for_again(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        calm = shutil.copytree(run, tmp_path / "calm")
        facts(command("pairs", calm, "--by", "probability", *ROLLOUTS, "--json"))
        failing = ("--set", "backends.default.faults=500=0.1", "--set", "limits.attempts=1")
        ended = command("pairs", run, "--by", "probability", *ROLLOUTS, *failing)
        assert ended.code == 3
        assert "of 24 rollouts got no answer" in ended.err, ended.err
        assert stored(run) < stored(calm)
        facts(command("pairs", run, "--by", "probability", *ROLLOUTS, "--json"))
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == (calm / "pairs" / "pairs.jsonl").read_bytes()

    @pytest.mark.crash
    def test_killed_it_goes_on_and_pays_for_nothing_twice(
        self, command: Command, run: Path, calm: Path
    ) -> None:
        slow = "--set=backends.default.latency_ms=20"
        before: set[tuple[Any, ...]] = set()

        async def kill_when_more_is_answered() -> None:
            process = await fork_server.start("pairs", run, "--by", "oracle", *ROLLOUTS, slow)
            while process.returncode is None and len(answered(run)) < len(before) + 40:
                await asyncio.sleep(0.01)
            process.kill()
            await process.wait()

        for _ in range(2):
            asyncio.run(kill_when_more_is_answered())
            assert before < stored(run)
            before = stored(run)
        facts(command("pairs", run, "--by", "oracle", *ROLLOUTS, "--json"))
        assert before < stored(run) == stored(calm)
        assert (run / "pairs" / "pairs.jsonl").read_bytes() == (calm / "pairs" / "pairs.jsonl").read_bytes()

    def test_pairs_near_their_end_are_not_played_on(self, command: Command, run: Path) -> None:
        command("pairs", run, "--by", "oracle", *ROLLOUTS, "--min-turns-left", "4")
        follow = left(run)
        with RunReader(run) as reader:
            for one in reader.compared():
                near = follow[one.pair.id] < 4
                assert (one.pair.left_out == "turns_left") is near
                assert bool(one.pair.signals.rollouts) is not near

    def test_a_run_made_anew_has_its_rollouts_made_anew(self, command: Command, run: Path) -> None:
        facts(command("pairs", run, "--by", "probability", *ROLLOUTS, "--json"))
        before = played(run)
        changed = ("--set", "backends.default.seed=9", "--yes")
        assert command("generate", run / "job.yaml", "-o", run, *changed).code == 0
        facts(command("pairs", run, "--by", "probability", *ROLLOUTS, "--json"))
        assert len([*(run / "pairs" / "rollouts").glob("*.db")]) == 2
        for ledger in (run / "pairs" / "rollouts").glob("*.db"):
            with LedgerReader(ledger) as view:
                assert view.status.pending == 0
        assert before

    def test_each_arm_is_played_on_by_its_own_agents(self, command: Command, tmp_path: Path) -> None:
        arms = "arms={plain: {}, hot: {backends: {default: {type: simulator, planted: 5, seed: 3}}}}"
        asyncio.run(generate_run(tmp_path / "run", arms, "replicates=1", "branch=null"))
        made = facts(command("pairs", tmp_path / "run", "--by", "probability", *ROLLOUTS, "--json"))
        assert [one["planned"] for one in made["rollouts"]] == [2 * 4, 2 * 4]
        assert all(signal_of(line, "probability")["counted"] == 2 for line in pairs(tmp_path / "run"))
        notes = sorted((tmp_path / "run" / "pairs" / "rollouts").glob("*.json"))
        seeds = {note["arm"]: note["backends"]["teacher"]["seed"] for note in map(_read, notes)}
        assert seeds == {"plain": 0, "hot": 3}

    def test_pieces_keep_their_rollouts_when_they_become_one_run(
        self, command: Command, tmp_path: Path
    ) -> None:
        pieces = [tmp_path / "first", tmp_path / "second"]
        for part, piece in zip((range(2), range(2, 4)), pieces, strict=True):
            asyncio.run(generate_run(piece, part=part))
            facts(command("pairs", piece, "--by", "oracle", *ROLLOUTS, "--json"))
        assert command("merge", *pieces, "-o", tmp_path / "whole").code == 0
        facts(command("pairs", tmp_path / "whole", "--by", "oracle", *ROLLOUTS, "--json"))
        assert stored(tmp_path / "whole") == stored(pieces[0]) | stored(pieces[1])


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def answered(folder: Path) -> set[tuple[Any, ...]]:
    """Return `stored`, while another process writes."""
    with contextlib.suppress(sqlite3.OperationalError):
        return stored(folder)
    return set()


class TestMistakes:
    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            (("--by", "oracle", "--rollouts", "0"), "0 is not in the range"),
            (("--by", "oracle", "--set", "pairs.rollouts=0"), "$.pairs.rollouts"),
            (("--by", "oracle", "--credit", "turns"), "'turns' is not one of"),
            (
                ("--by", "oracle", "--credit", "whole", "--rollouts", "3"),
                "--rollouts goes with --credit rollouts",
            ),
            (("--by", "probability", "--credit", "response"), "only a judge compares responses"),
            (("--by", "human", "--credit", "rollouts"), "people's votes are about whole conversations"),
            (("--by", "oracle", "--set", "pairs={rollouts: 2, compare: response}"), "leave pairs.compare"),
            (("--credit", "rollouts"), "--signal is missing: name the evidence for labels"),
            (("--by", "oracle", "--judge", "nobody", "--credit", "rollouts"), "no backend 'nobody'"),
        ],
    )
    def test_nothing_is_asked_and_a_sentence_says_why(
        self, command: Command, run: Path, asked: tuple[str, ...], said: str
    ) -> None:
        ended = command("pairs", run, *asked)
        assert (ended.code, said in " ".join(ended.err.split())) == (2, True), ended.err
        assert not [*run.glob("pairs/**/*.db")]

    def test_one_answer_that_is_a_whole_conversation_has_no_turn_to_play_on_from(
        self, command: Command, tmp_path: Path
    ) -> None:
        quick = ROOT / "jobs" / "quickstart.yaml"
        command("generate", quick, "-n", "3", "--set", "replicates=2", "-o", tmp_path / "run")
        ended = command("pairs", tmp_path / "run", "--by", "oracle", "--credit", "rollouts")
        assert ended.code == 2
        assert "the protocol oneshot cannot continue a conversation from a turn" in ended.err

    def test_conversations_without_a_probability_have_rollouts_without(
        self, command: Command, tmp_path: Path
    ) -> None:
        asyncio.run(generate_run(tmp_path / "run", "selfplay.closing=null", "conversations=2"))
        ended = command("pairs", tmp_path / "run", "--by", "probability", *ROLLOUTS)
        assert (ended.code, "closing: student" in ended.err) == (2, True)
        judged = command("pairs", tmp_path / "run", "--by", "oracle", *ROLLOUTS)
        assert judged.code == 0, judged.err

    def test_where_no_pair_parts_at_a_turn_there_is_nothing_to_play_on_from(
        self, command: Command, run: Path
    ) -> None:
        ended = command("pairs", run, "--by", "oracle", *ROLLOUTS, "--min-turns-left", "90")
        assert (ended.code, "no pair of this run parts" in ended.err) == (2, True), ended.err
