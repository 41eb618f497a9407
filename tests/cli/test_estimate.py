"""Estimates compared with the real use of runs by the embedded simulator."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgen.cli.estimate import label_text
from edgen.core import resources
from edgen.core.text import format_dollars
from tests.cli.command import Command
from tests.cli.test_batch import begun
from tests.execution.batch.test_batch_kill import simulator, write_job
from tests.execution.service import edgen
from tests.test_imports import imported

PRICED = {
    "type": "simulator",
    "faults": "refusal=0.05,truncated=0.05",
    "price": {"prompt": 1.0, "completion": 3.0},
}


def job(folder: Path, name: str, **changes: Any) -> Path:
    values = {
        "name": name,
        "seed": 1,
        "conversations": 30,
        "space": "education_dialogue",
        "prompt": "education_dialogue",
        "backends": {"default": PRICED},
        **changes,
    }
    if values.get("protocol") == "selfplay":
        del values["prompt"]
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in values.items() if value is not None}))
    return path


SELFPLAY = {
    "protocol": "selfplay",
    "replicates": 2,
    "branch": {"at": "sampled"},
    "selfplay": {"closing": "student"},
    "too_long": "ask",  # kept truncated turns change the lengths of conversations
}


def made(command: Command, path: Path, run: Path, *more: str) -> dict[str, float]:
    """Generate a run and return its own figures of its use."""
    ended = command("generate", path, "-o", run, "--json", *more)
    assert ended.code in (0, 3), ended.err
    facts = json.loads(ended.out)
    return {
        "calls": facts["calls"]["now"],
        "prompt": facts["tokens"]["prompt"],
        "completion": facts["tokens"]["completion"],
        "usd": facts["cost_usd"],
    }


def estimated(command: Command, path: Path, *more: str | Path) -> dict[str, Any]:
    ended = command("estimate", path, "--json", *more)
    assert ended.code == 0, ended.err
    facts: dict[str, Any] = json.loads(ended.out)
    return facts


def intervals(facts: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {"calls": facts["calls"], **facts["tokens"], "usd": facts["cost_usd"]}


def held(facts: dict[str, Any], used: dict[str, float]) -> dict[str, bool]:
    found = intervals(facts)
    return {key: found[key]["low"] <= used[key] <= found[key]["high"] for key in used}


@pytest.mark.only_long
@pytest.mark.parametrize(
    ("kind", "pilot", "planned"),
    [({}, 25, 80), (SELFPLAY, 10, 16)],
    ids=["oneshot", "selfplay"],
)
def test_the_interval_holds_what_a_run_used(
    command: Command, tmp_path: Path, kind: dict[str, Any], pilot: int, planned: int
) -> None:
    """Each job is estimated from an earlier run of other scenarios, and without one. Of sixteen 95%
    intervals, at least fourteen must hold: good intervals do in 96% of such series, intervals that hold in
    70% of the cases in one of ten."""
    seeds = 16
    from_runs = dict.fromkeys(("calls", "prompt", "completion", "usd"), 0)
    for seed in range(seeds):
        here = tmp_path / str(seed)
        here.mkdir()
        first = job(here, "pilot", seed=1000 + seed, conversations=pilot, **kind)
        made(command, first, here / "runs" / "pilot")
        path = job(here, "big", seed=seed, conversations=planned, **kind)
        told = estimated(command, path, "--runs", here / "runs")
        assumed = estimated(command, path, "--runs", here / "none")
        used = made(command, path, here / "big")
        assert (told["basis"]["answers"], assumed["basis"]["answers"]) == ("runs", "assumed")
        for key, holds in held(told, used).items():
            from_runs[key] += holds
        assert all(held(assumed, used).values()), (seed, used, intervals(assumed))
        width = {key: one["high"] / one["low"] for key, one in intervals(told).items()}
        assert all(value < 2 for value in width.values()), width  # the interval is narrow enough to be useful
    assert min(from_runs.values()) >= 14, from_runs


def test_what_is_there_is_not_counted_again(command: Command, tmp_path: Path) -> None:
    path, runs = job(tmp_path, "grows"), tmp_path / "runs"
    before = made(command, path, runs / "grows", "-n", "60")
    facts = estimated(command, path, "-n", "100", "--runs", runs)
    assert facts["already"]["conversations"] == 60
    assert facts["already"]["calls"] == before["calls"]
    assert facts["already"]["cost_usd"] == pytest.approx(before["usd"])
    assert (facts["conversations"], facts["to_make"]) == (100, 40)
    after = made(command, path, runs / "grows", "-n", "100")
    # A run sums tokens over its sessions, and reports the calls of this session.
    new = {key: after[key] - before[key] for key in ("prompt", "completion", "usd")} | {
        "calls": after["calls"]
    }
    assert all(held(facts, new).values()), (new, intervals(facts))
    few = " ".join(command("estimate", path, "-n", "1", "--runs", runs).out.split())
    assert "grows: 1 conversation, 0 still to make" in few
    assert (
        f"1 conversation of these exists; the run has used {after['calls'] + before['calls']:,.0f} calls"
        in few
    )
    assert " in total" in few
    done = estimated(command, path, "-n", "100", "--runs", runs)
    assert done["to_make"] == 0
    assert all(one["high"] == 0 for one in intervals(done).values())


def test_a_run_of_another_form_is_no_part_of_it(command: Command, tmp_path: Path) -> None:
    path, runs = job(tmp_path, "changes"), tmp_path / "runs"
    made(command, path, runs / "changes")
    facts = estimated(command, path, "--runs", runs, "--set", "seed=99")
    assert facts["already"]["other_form"]
    assert (facts["already"]["conversations"], facts["to_make"]) == (0, 30)
    said = command("estimate", path, "--runs", runs, "--set", "seed=99").out
    assert "made by another version of this job" in " ".join(said.split())


def test_a_run_that_was_stopped(command: Command, tmp_path: Path) -> None:
    """Begun conversations count with their use; conversations of an early stop do not inform the estimate."""
    backend = PRICED | {"max_tokens": 400}
    path = job(tmp_path, "stopped", backends={"default": backend}, conversations=12, **SELFPLAY)
    runs = tmp_path / "runs"
    ended = command("generate", path, "-o", runs / "stopped", "--json", "--set", "limits.max_cost=0.05")
    assert ended.code == 4, ended.err
    before = json.loads(ended.out)
    cap = ("--set", "limits.max_cost=0.2")
    facts = estimated(command, path, "--runs", runs, *cap)
    there = facts["already"]["conversations"]
    assert facts["to_make"] == 24 - there
    (budget,) = facts["budget"]
    assert budget["charged"] >= before["cost_usd"]
    assert there / 24 <= budget["share"] <= 1
    used = made(command, path, runs / "stopped")
    new = {key: used[key] - before["tokens"][key] for key in ("prompt", "completion")}
    new["usd"] = used["usd"] - before["cost_usd"]
    assert all(held(facts, new | {"calls": used["calls"]}).values()), (new, intervals(facts))


def test_a_budget_reaches_as_far_as_it_is_said_to(command: Command, tmp_path: Path) -> None:
    backend = PRICED | {"max_tokens": 600}
    runs = tmp_path / "runs"
    made(command, job(tmp_path, "pilot", seed=5, backends={"default": backend}), runs / "pilot")
    path = job(tmp_path, "capped", backends={"default": backend}, conversations=200)
    cap = 0.37 * intervals(estimated(command, path, "--runs", runs))["usd"]["expected"]
    limits = ("--set", f"limits={{max_cost: {cap}, in_flight: 1}}")
    facts = estimated(command, path, "--runs", runs, *limits)
    (budget,) = facts["budget"]
    assert budget["share"] == pytest.approx(0.37, abs=0.001)
    assert not budget["enough"]
    assert "covers about 37% of the conversations" in command("estimate", path, "--runs", runs, *limits).out
    ended = command("generate", path, "-o", tmp_path / "run", "--json", *limits)
    assert ended.code == 4
    reached = json.loads(ended.out)
    assert reached["cost_usd"] <= cap
    assert (200 - reached["pending"]) / 200 == pytest.approx(0.37, abs=0.06)


@pytest.mark.parametrize("kind", [{}, SELFPLAY], ids=["oneshot", "selfplay"])
def test_no_run_uses_more_than_the_most(command: Command, tmp_path: Path, kind: dict[str, Any]) -> None:
    """Every answer is truncated and retried with more room."""
    backend = {**PRICED, "max_tokens": 4, "faults": "truncated=0.9"}
    path = job(tmp_path, "cut", backends={"default": backend}, conversations=5, **kind)
    facts = estimated(command, path, "--runs", tmp_path)
    used = made(command, path, tmp_path / "cut")
    for key, interval in intervals(facts).items():
        assert used[key] <= interval["at_most"], key
        assert interval["high"] <= interval["at_most"], key


def test_the_most_holds_for_the_longest_scenario_too(command: Command, tmp_path: Path) -> None:
    """One topic of thousands has a long text, and the template has more text for one
    preference: a sample may miss both."""
    space = yaml.safe_load(
        (resources.find_folder("preference_space") / "education_dialogue.yaml").read_text()
    )
    space["topics"] = [f"topic {number}" for number in range(1500)]
    space["topics"][1234] = "tides " * 1000 + "."
    space["student_preferences"].append("rigour")
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(space))
    template = (resources.find_folder("prompts") / "education_dialogue.j2").read_text()
    said = "{% if student_preference == 'rigour' %}" + "Be exact. " * 500 + "{% endif %}"
    (tmp_path / "prompt.j2").write_text(f"{template}\n{said}\n")
    path = job(
        tmp_path,
        "long",
        space="./space.yaml",
        prompt="./prompt.j2",
        asks=1,
        conversations=1000,
        backends={"default": PRICED | {"max_tokens": 100}},
    )
    for part in ("0:1000", "3:4"):
        facts = estimated(command, path, "--runs", tmp_path, "--range", part)
        most = facts["tokens"]["prompt"]["at_most"] / facts["conversations"]
        assert 6000 + 5000 < most < 6000 + 5000 + 4000


def test_the_most_is_not_called_certain(command: Command, tmp_path: Path) -> None:
    """Lost calls are charged at their most and retried, which `at most` does not include."""
    backend = {**PRICED, "max_tokens": 900, "faults": "hang=0.5"}
    cap = ("--set", "limits={max_cost: 5.0, timeout: 0.05, attempts: 5, give_up_after: 5}")
    path = job(tmp_path, "lost", backends={"default": backend}, conversations=8, asks=2)
    facts = estimated(command, path, "--runs", tmp_path, *cap)
    (budget,) = facts["budget"]
    assert budget["enough_at_most"]
    assert "certain" not in budget
    (said,) = [one for one in facts["basis"]["said"] if one.startswith("at most")]
    assert "2 requests for each answer" in said
    assert "each as long as max_tokens allows;" in said
    assert "tried up to 5 times" in said
    text = " ".join(command("estimate", path, "--runs", tmp_path, *cap).out.split())
    assert "covers the maximum of everything, if no call is lost" in text
    assert said in text


def test_a_cap_on_what_costs_nothing_binds_nothing(command: Command, tmp_path: Path) -> None:
    backend = PRICED | {"price": {"prompt": 0, "completion": 0}, "max_tokens": 900}
    path = job(tmp_path, "free", backends={"default": backend}, limits={"max_cost": 1, "max_tokens": 10**9})
    facts = estimated(command, path, "--runs", tmp_path)
    assert [(cap["key"], cap["binds"]) for cap in facts["budget"]] == [
        ("max_cost", False),
        ("max_tokens", True),
    ]
    text = command("estimate", path, "--runs", tmp_path).out
    assert "limits.max_cost 1.00 has no effect, since every price is 0" in text


def test_by_batch_a_tight_cap_takes_rounds(command: Command, tmp_path: Path) -> None:
    path = job(
        tmp_path, "tight", backends={"default": PRICED | {"max_tokens": 900}}, limits={"max_cost": 0.05}
    )
    for via in ("online", "batch"):
        text = " ".join(command("estimate", path, "--runs", tmp_path, "--via", via).out.split())
        assert ("so several rounds may be needed" in text) is (via == "batch")


async def test_what_is_at_the_provider_is_not_new(tmp_path: Path) -> None:
    async with simulator("--batch-seconds", "600") as url:
        path = write_job(tmp_path / "job.yaml", "openai", url, "oneshot", limits={"max_cost": 20})
        values = json.loads(path.read_text())
        values["backends"]["default"]["price"] = {"prompt": 1.0, "completion": 3.0, "batch": 0.5}
        path.write_text(json.dumps(values))
        by = ("estimate", path, "-o", tmp_path / "run", "--runs", tmp_path / "none", "--via", "batch")
        before = (await edgen(*by, "--json")).facts
        await begun(tmp_path / "run", path)
        after = (await edgen(*by, "--json")).facts
        part = (await edgen(*by, "--json", "--range", "4:10")).facts
        text = " ".join((await edgen(*by)).out.split())
    assert (before["already"]["out"]["calls"], after["already"]["out"]["calls"]) == (0, 24)
    assert part["already"]["out"]["calls"] == 6
    assert after["to_make"] == 24
    assert before["calls"]["expected"] >= 24
    assert after["calls"]["expected"] == before["calls"]["expected"] - 24
    assert after["cost_usd"]["expected"] < 0.1 * before["cost_usd"]["expected"]
    most = after["already"]["out"]["cost_usd"]
    assert 0 < most <= before["cost_usd"]["at_most"]
    assert f"24 requests are at the provider, for {format_dollars(most)} at most, and counted only" in text
    (was,), (now,) = before["budget"], after["budget"]
    assert now["charged"] == pytest.approx(now["out"])
    assert now["out"] == pytest.approx(most, abs=1e-6)
    assert [now[key] for key in ("share", "enough", "enough_at_most")] == [
        was[key] for key in ("share", "enough", "enough_at_most")
    ]
    # A cap equal to the reserve of calls in flight is used up by it: nothing is counted twice.
    tight = await edgen(*by, "--json", "--set", f"limits.max_cost={most + 1e-6:.6f}")
    assert tight.facts["budget"][0]["share"] == 1


def test_a_batch_costs_its_share(command: Command, tmp_path: Path) -> None:
    price = {"prompt": 1.0, "completion": 3.0, "batch": 0.5}
    path = job(tmp_path, "halved", backends={"default": PRICED | {"price": price}})
    online, batch = (
        estimated(command, path, "--runs", tmp_path, "--via", via) for via in ("online", "batch")
    )
    assert batch["cost_usd"]["expected"] == pytest.approx(online["cost_usd"]["expected"] / 2, abs=1e-5)
    assert batch["tokens"] == online["tokens"]


def test_arms_are_told_one_by_one_and_together(command: Command, tmp_path: Path) -> None:
    path = job(tmp_path, "arms", arms={"plain": {}, "json": {"prompt": "education_dialogue_json"}})
    run = tmp_path / "arms"
    assert command("generate", path, "-o", run, "-n", "20").code in (0, 3)
    facts = estimated(command, path, "--runs", tmp_path)
    assert facts["conversations"] == 60
    assert facts["already"]["conversations"] == 40
    for key in ("low", "expected", "high"):
        assert facts["calls"][key] == pytest.approx(
            sum(a["calls"][key] for a in facts["arms"].values()), abs=1
        )
    rests = {name: [one["run"] for one in arm["basis"]["runs"]] for name, arm in facts["arms"].items()}
    assert rests == {name: [str(run / "arms" / name)] for name in ("plain", "json")}


def test_other_models_and_simulators_are_told_apart(command: Command, tmp_path: Path) -> None:
    made(command, job(tmp_path, "pilot"), tmp_path / "runs" / "pilot")
    real = {"type": "openai", "model": "gpt-4o-mini", "max_tokens": 900}
    facts = estimated(command, job(tmp_path, "real", backends={"default": real}), "--runs", tmp_path / "runs")
    assert facts["basis"]["answers"] == "assumed"  # a simulator's answers say nothing about a real model
    assert "o200k_base" in facts["basis"]["prompts"]
    assert facts["prices"][0]["source"].startswith("https://")
    assert facts["cost_usd"]["high"] <= facts["cost_usd"]["at_most"]
    other = {"default": PRICED | {"model": "another"}}
    facts = estimated(command, job(tmp_path, "other", backends=other), "--runs", tmp_path / "runs")
    assert (
        "another model answered in those runs (edgen-simulator): assumed within a factor of 2"
        in facts["basis"]["said"]
    )
    assert facts["calls"]["high"] >= 2 * facts["calls"]["expected"] * 0.99


def test_a_part_of_the_scenarios(command: Command, tmp_path: Path) -> None:
    path = job(tmp_path, "part", conversations=100)
    assert estimated(command, path, "--runs", tmp_path, "--range", "10:30")["conversations"] == 20
    ended = command("estimate", path, "--range", "100:200")
    assert ended.code == 2
    assert "the job plans 100 scenarios, and none of these" in ended.err


def test_with_top_up_more_are_planned_for_those_rejected(command: Command, tmp_path: Path) -> None:
    backend = {"default": PRICED | {"faults": "refusal=0.3"}}
    runs = tmp_path / "runs"
    made(command, job(tmp_path, "pilot", seed=3, asks=1, backends=backend), runs / "pilot")
    path = job(tmp_path, "topped", asks=1, backends=backend, top_up=True, conversations=60)
    facts = estimated(command, path, "--runs", runs)
    assert facts["to_make"] > 70
    used = made(command, path, runs / "topped")
    assert all(held(facts, used).values()), (used, intervals(facts))
    assert estimated(command, path, "--runs", runs)["to_make"] == 0


def test_it_writes_nothing_and_needs_no_key(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = job(tmp_path, "alone", backends={"default": {"type": "gemini", "model": "gemini-2.5-flash"}})
    before = sorted(tmp_path.rglob("*"))
    ended = command("estimate", path)
    assert ended.code == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert "https://ai.google.dev/gemini-api/docs/pricing; 2025-10-31" in " ".join(ended.out.split())
    assert "may charge for reasoning before the answer" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 100


@pytest.mark.parametrize("name", ["quickstart", "selfplay", "experiment"])
def test_the_shipped_jobs(command: Command, tmp_path: Path, name: str) -> None:
    ended = command("estimate", resources.find_folder("jobs") / f"{name}.yaml", "--runs", tmp_path)
    assert ended.code == 0
    assert "price unknown" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 100


def test_broken_and_foreign_runs_tell_nothing(command: Command, tmp_path: Path) -> None:
    made(command, job(tmp_path, "pilot"), tmp_path / "runs" / "pilot")
    (tmp_path / "runs" / "pilot" / "run.db").write_bytes(b"no ledger")
    path = job(tmp_path, "next")
    assert estimated(command, path, "--runs", tmp_path / "runs")["basis"]["answers"] == "assumed"


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    names = imported(
        "estimate", str(resources.find_folder("jobs") / "selfplay.yaml"), "--runs", str(tmp_path)
    )
    assert (
        names & {"numpy", "matplotlib", "rensa", "nltk", "openai", "google.genai", "aiohttp", "bpe_openai"}
        == set()
    )


def test_earlier_runs_tell_and_batches_have_no_time(command: Command, tmp_path: Path) -> None:
    slow = {"default": {"type": "simulator", "latency_ms": 200}}
    path = job(tmp_path, "slow", conversations=8, backends=slow)
    assert command("generate", path, "-o", tmp_path / "runs" / "one").code == 0
    said = command("estimate", path, "--runs", tmp_path / "runs", "-n", "80", "--set", "limits.in_flight=1")
    took = re.search(r"time: a call took (\d+(?:\.\d+)?) s", " ".join(said.out.split()))
    assert took is not None
    assert float(took[1]) >= 0.2  # a busy machine takes longer
    facts = json.loads(command("estimate", path, "--runs", tmp_path / "runs", "-n", "80", "--json").out)
    assert facts["seconds"]["low"] <= facts["seconds"]["expected"] <= facts["seconds"]["high"]
    assert json.loads(command("estimate", path, "--via", "batch", "--json").out)["seconds"] is None


def test_a_command_to_copy_stays_on_one_line() -> None:
    command = "`/a/long/way/to/python -m pip install 'one>=1' 'two>=2'`"
    lines = label_text(
        "rests on", f"prompts are counted exactly after what follows, once it is run here: {command}"
    )
    assert len(lines) == 2
    assert lines[1].strip() == command


class TestGates:
    GATES = {"sure": "probability > .3", "new": "not near_duplicate"}

    def test_what_they_cost_follows_from_runs_without_them(self, command: Command, tmp_path: Path) -> None:
        """Retries, and replacements."""
        made(command, job(tmp_path, "pilot", seed=9, conversations=200, asks=2), tmp_path / "runs" / "pilot")
        path = job(tmp_path, "big", conversations=150, gates=self.GATES, top_up=True, asks=2)
        told = estimated(command, path, "--runs", tmp_path / "runs")
        plain = estimated(command, path, "--runs", tmp_path / "runs", "--set", "gates.sure='True'")
        used = made(command, path, tmp_path / "big")
        found, without = intervals(told), intervals(plain)
        assert used["calls"] > 1.3 * without["calls"]["expected"], "the gate costs nothing"
        assert used["calls"] == pytest.approx(found["calls"]["expected"], rel=0.2)
        assert all(held(told, used).values()), (used, found)
        said = [sentence for sentence in told["basis"]["said"] if sentence.startswith("gates: ")]
        assert "conversations in those runs pass them; each is tried 2 times at most" in said[0]

    def test_runs_with_the_same_gates_tell_by_themselves(self, command: Command, tmp_path: Path) -> None:
        kind: dict[str, Any] = {"gates": self.GATES, "asks": 2, "top_up": True}
        made(command, job(tmp_path, "pilot", seed=9, conversations=60, **kind), tmp_path / "runs" / "pilot")
        path = job(tmp_path, "big", conversations=80, **kind)
        told = estimated(command, path, "--runs", tmp_path / "runs")
        assert not [sentence for sentence in told["basis"]["said"] if sentence.startswith("gates: ")]
        assert made(command, path, tmp_path / "big")["calls"] == pytest.approx(
            told["calls"]["expected"], rel=0.2
        )

    @pytest.mark.parametrize("pilot", ["none", "without", "same"])
    def test_requests_for_labels_are_counted(self, command: Command, tmp_path: Path, pilot: str) -> None:
        """By assumption, four of five levels pass without earlier data; the annotator has its own price."""
        annotator = PRICED | {"price": {"prompt": 10.0, "completion": 0.0}}
        kind: dict[str, Any] = {
            "gates": {"good": "labels.quality >= 2"}, "labels": {"quality": {"annotators": 2}}, "asks": 2, "top_up": True,
            "backends": {"default": PRICED, "annotator": annotator},
        }  # fmt: skip
        if pilot != "none":
            given = kind if pilot == "same" else {"asks": 2}
            made(
                command,
                job(tmp_path, "pilot", seed=9, conversations=40, **given),
                tmp_path / "runs" / "pilot",
            )
        path = job(tmp_path, "big", conversations=60, **kind)
        told = estimated(command, path, "--runs", tmp_path / "runs")
        used = made(command, path, tmp_path / "big")
        assert all(held(told, used).values()), (used, intervals(told))
        assert told["basis"]["answers"] == ("assumed" if pilot == "none" else "runs")
        assert used["calls"] == pytest.approx(told["calls"]["expected"], rel=0.25)
        assert used["usd"] == pytest.approx(told["cost_usd"]["expected"], rel=0.5)
        said = [sentence for sentence in told["basis"]["said"] if sentence.startswith("gates: ")]
        assert len(said) == (pilot != "same")

    def test_a_share_can_be_said(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path, "big", conversations=100, gates=self.GATES, top_up=True, asks=1)
        found = [
            estimated(command, path, "--runs", tmp_path, *more)
            for more in ([], ["--pass-rate", "0.5"], ["--pass-rate", "1"])
        ]
        assert found[1]["calls"]["expected"] == pytest.approx(2 * found[2]["calls"]["expected"], rel=0.02)
        assert found[2]["calls"]["expected"] < found[0]["calls"]["expected"] < found[1]["calls"]["expected"]
        assert any("80% pass, assumed between 50% and 95%" in said for said in found[0]["basis"]["said"])
