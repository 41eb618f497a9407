"""Judging with log probabilities on the command line: requested where supported, stored
before use, reported."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgen.cli.app import app
from edgen.cli.output import run_guarded
from edgen.protocols.base import transcript_of
from edgen.store.run_reader import RunReader
from tests.cli.command import Command
from tests.execution.service import edgen, end, start
from tests.preferences.soft_judge import SoftJudge, planted, serving

ASKED = ("--by", "oracle", "--credit", "whole", "--set", "pairs.logprobs=5")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a run of three conversations a scenario with the simulator; tests use copies."""
    folder = tmp_path_factory.mktemp("made")
    job = folder / "job.yaml"
    job.write_text(
        json.dumps(
            {
                "name": "t", "seed": 3, "conversations": 8, "replicates": 3, "space": "education_dialogue",
                "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
            }
        )
    )  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        run_guarded(lambda: app(["generate", str(job), "-o", str(folder / "run")], prog_name="edgen"))
    assert ended.value.code == 0
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture
def soft() -> Iterator[SoftJudge]:
    with serving() as running:
        yield running


def by(soft: SoftJudge) -> tuple[str, str]:
    backend = {"type": "openai", "model": "soft", "base_url": soft.url, "seed": "auto"}
    return "--set", f"backends.judge={json.dumps(backend)}"


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "pairs" / "pairs.jsonl").read_text().splitlines()]


def signals(run: Path) -> list[dict[str, Any]]:
    return [line["signals"]["oracle"][0] for line in lines(run)]


def test_each_pair_has_a_soft_preference_in_which_the_slot_cancels_out(
    command: Command, run: Path, soft: SoftJudge
) -> None:
    ended = command("pairs", run, *ASKED, *by(soft), "--json", "--report")
    assert ended.code == 0, ended.err
    with RunReader(run) as reader:
        compared = list(reader.compared())
    assert len(compared) == 24
    for one in compared:
        (signal,) = one.pair.signals.oracle
        expected = planted(transcript_of(one.a.turns), transcript_of(one.b.turns))
        told: Any = signal.logprobs
        assert told.known == 2
        assert told.p == pytest.approx(expected, abs=1e-4)
        assert told.p_ab == pytest.approx(expected + 0.1, abs=1e-4)
        assert [verdict.logprob_p for verdict in signal.verdicts] == [told.p_ab, told.p_ba]
    report = json.loads(ended.out)["report"]["judges"][0]["logprobs"]
    assert (report["pairs"], report["known"], report["gaps"]) == (24, 24, {})
    assert report["first_slot"]["value"] == pytest.approx(0.6, abs=1e-4)
    assert report["ties"]["verdicts"] > 0
    assert report["ties"]["logprobs"] == 0
    assert report["agreement"]["value"] == 1
    assert [held["truth"] for held in report["against"]] == ["probability"]


def test_without_them_pairs_are_what_they_were_and_nothing_is_asked_again(
    command: Command, run: Path
) -> None:
    assert command("pairs", run, "--by", "oracle", "--credit", "whole").code == 0
    plain = (run / "pairs" / "pairs.jsonl").read_bytes()
    assert b"logprob" not in plain
    told = command("pairs", run, *ASKED, "--json")
    assert json.loads(told.out)["calls"]["made"] == 96, "the request is another one"
    assert all(signal["logprobs"]["p"] is not None for signal in signals(run))
    soft = (run / "pairs" / "pairs.jsonl").read_bytes()
    again = command("pairs", run, "--by", "oracle", "--json")
    assert json.loads(again.out)["calls"]["made"] == 96
    assert (run / "pairs" / "pairs.jsonl").read_bytes() == plain
    assert command("pairs", run, *ASKED).code == 0
    assert (run / "pairs" / "pairs.jsonl").read_bytes() == soft


def test_repeated_votes_are_held_against_each_other(command: Command, run: Path) -> None:
    assert command("pairs", run, *ASKED, "--set", "pairs.votes=3").code == 0
    ended = command("pairs", run, "--report")
    assert "As a forecast of the judge's next vote on the same pair in the same order, 144 cases" in " ".join(
        ended.out.split()
    )
    assert "slope" in ended.out


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ({"type": "anthropic", "model": "m", "max_tokens": 9}, "a backend of type anthropic returns none"),
        (
            {
                "type": "openai",
                "model": "m",
                "base_url": "http://127.0.0.1:9/v1",
                "extra_body": {"logprobs": False},
            },
            "its extra_body sets logprobs, too",
        ),
    ],
)
def test_who_cannot_tell_them_is_refused_before_anything_is_spent(
    command: Command, run: Path, judge: dict[str, Any], said: str
) -> None:
    ended = command("pairs", run, *ASKED, "--set", f"backends.judge={json.dumps(judge)}")
    assert ended.code == 2
    assert "$.pairs.logprobs" in ended.err
    assert said in " ".join(ended.err.split())
    assert not (run / "pairs").exists()


def test_a_service_that_tells_none_is_said_so_and_its_verdicts_stand(
    command: Command, run: Path, soft: SoftJudge, caplog: pytest.LogCaptureFixture
) -> None:
    soft.mode = "silent"
    ended = command("pairs", run, *ASKED, *by(soft), "--json", "--report")
    assert ended.code == 0
    assert sum("sent some answers without log probabilities" in line for line in caplog.messages) == 1
    report = json.loads(ended.out)["report"]["judges"][0]["logprobs"]
    assert (report["known"], report["gaps"], report["against"]) == (0, {"not_told": 48}, [])
    assert {verdict["logprob_gap"] for signal in signals(run) for verdict in signal["verdicts"]} == {
        "not_told"
    }
    assert command("report", run).code == 0


@pytest.mark.parametrize(
    ("mode", "code", "said"),
    [
        ("tells", 0, "pairs.logprobs: 3: 3 likely tokens at each of 14 places"),
        ("silent", 5, "the service accepts pairs.logprobs: 3 but returns none"),
        ("refuses", 5, "logprobs are not supported with this model. Ask for fewer, choose another judge"),
    ],
)
def test_doctor_tries_them_where_a_job_asks_for_them(
    command: Command, run: Path, soft: SoftJudge, mode: Any, code: int, said: str
) -> None:
    soft.mode = mode
    job = run.parent / "job.yaml"
    judge = json.loads(by(soft)[1].partition("=")[2])
    job.write_text(
        json.dumps(
            {
                "name": "t", "conversations": 8, "space": "education_dialogue", "prompt": "education_dialogue",
                "backends": {"default": {"type": "simulator"}, "judge": judge}, "pairs": {"logprobs": 3},
            }
        )
    )  # fmt: skip
    ended = command("doctor", job)
    assert said in " ".join(ended.out.split())
    assert ended.code == code
    soft.refusal = 403
    assert said in " ".join(command("doctor", job).out.split())
    plain = command("doctor", job, "--set", "pairs.logprobs=null")
    assert plain.code == 0
    assert "logprobs" not in plain.out


async def test_a_judge_that_is_killed_goes_on_with_the_same_bytes(
    made: Path, tmp_path: Path, soft: SoftJudge
) -> None:
    calm, killed = (shutil.copytree(made, tmp_path / name / "run") for name in ("calm", "killed"))
    said = (*ASKED, *by(soft), "--set", "limits.in_flight=4")
    assert (await edgen("pairs", calm, *said)).code == 0
    soft.asked.clear()
    soft.hold_after = 20
    process = await start("pairs", killed, *said)
    while not soft.held.is_set():
        await asyncio.sleep(0.01)
    process.kill()
    await end(process)
    soft.hold_after = None
    soft.released.set()
    ended = await edgen("pairs", killed, *said, "--json")
    assert ended.code == 0, ended.err
    replayed = ended.facts["calls"]["replayed"]
    assert 0 < replayed <= 20
    assert sum(count - 1 for count in soft.asked.values()) <= 8, "what was stored is not asked again"
    names = ("pairs/pairs.jsonl",)
    assert [(killed / name).read_bytes() for name in names] == [(calm / name).read_bytes() for name in names]


@pytest.mark.only_long
def test_the_simulated_judge_is_as_sure_as_it_should_be(command: Command, tmp_path: Path) -> None:
    """The judge's log probabilities forecast which conversation gets the higher probability from the closing
    judge: better than its verdicts do, and with a slope of 1."""
    job = tmp_path / "job.yaml"
    job.write_text(
        json.dumps(
            {
                "name": "t", "seed": 7, "conversations": 40, "replicates": 3, "space": "education_dialogue",
                "protocol": "selfplay", "selfplay": {"closing": "judge"}, "backends": {"default": {"type": "simulator"}},
            }
        )
    )  # fmt: skip
    assert command("generate", job, "-o", tmp_path / "run").code == 0
    ended = command("pairs", tmp_path / "run", *ASKED, "--report", "--json")
    held = json.loads(ended.out)["report"]["judges"][0]["logprobs"]["against"][0]
    assert held["truth"] == "probability"
    assert held["slope"]["low"] < 1 < held["slope"]["high"]
    assert held["slope"]["low"] > 0.3
    assert (
        held["logprobs"]["brier"]["value"]
        < held["strengths"]["brier"]["value"]
        < held["verdicts"]["brier"]["value"]
    )
    assert command("report", tmp_path / "run").code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Calibration of the judge&#39;s preferences" in page
    assert "Soft preferences of edgen-simulator" in page
    stats = command("stats", tmp_path / "run", "--only", "calibration")
    assert "log probabilities 0." in " ".join(stats.out.split())
