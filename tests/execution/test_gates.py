"""A job's gates: conversations that fail are rejected under the gates' names, retried within `asks`, and
replaced; the bytes depend only on the answers and on the order of scenarios."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

import edgen
from edgen.api.status import read_status
from edgen.core import resources
from edgen.core.errors import JobError, RunError, ShortError, UsageError, UselessError
from edgen.core.values import Conversation, Message, Scenario, Turn
from edgen.expressions.conversation import Facts
from edgen.merging.merge import merge
from edgen.planning.gates import read_gates
from edgen.simulator.text import respond
from edgen.space import load_space
from edgen.store.ledger import LedgerReader
from edgen.store.run_reader import RunReader
from tests.dose import dose
from tests.execution import service as served
from tests.execution.batch.test_batch_kill import backend, simulator
from tests.execution.service import Service, equation, files

EDUCATION = load_space(resources.find("preference_space", "education_dialogue"))
JOB: dict[str, Any] = {
    "name": "t", "seed": 5, "conversations": 24, "space": "education_dialogue", "prompt": "education_dialogue",
    "asks": 3, "backends": {"default": {"type": "simulator"}},
}  # fmt: skip
GATES = {"short": "turns < 14", "new": "not near_duplicate"}


def conversation(*words: str, turns: int = 2) -> str:
    return "\n".join(
        f"{'Student' if turn % 2 else 'Teacher'}: {' '.join(words)} {turn}?" for turn in range(turns)
    )


def records(run: Path) -> list[tuple[int, int, bytes]]:
    with RunReader(run) as reader:
        return [(scenario, task, data) for scenario, task, _, data in reader.views[""].iterate_records()]


class TestByItself:
    def test_what_fails_is_asked_for_again_and_no_call_more_often_than_asks(self, tmp_path: Path) -> None:
        """Unreadable answers and conversations that fail a gate use up the same attempts."""
        asked: Counter[tuple[int, int]] = Counter()

        async def say(request: edgen.Request) -> str:
            place = request.address
            asked[place.scenario, place.attempt] += 1
            kinds = ["garbage", "long", "short"]
            kind = kinds[(place.scenario // 3**place.attempt) % 3]  # every combination of three attempts
            return (
                "I like turtles."
                if kind == "garbage"
                else conversation("so", turns=8 if kind == "long" else 4)
            )

        job = JOB | {"conversations": 27, "gates": {"short": "turns < 8"}}
        with pytest.raises(
            ShortError, match=r"19 of 27 conversations were accepted \(no_turns 4, gate:short 4\)"
        ):
            edgen.generate(job, output=tmp_path / "run", backends={"default": say})
        assert max(asked.values()) == 1
        assert max(attempt for _, attempt in asked) == 2
        taken = {scenario: max(a for s, a in asked if s == scenario) for scenario, _ in asked}
        with RunReader(tmp_path / "run") as reader:
            for one in reader.conversations():
                assert len(one.turns) == 4
                assert one.provenance["attempts"] == taken[one.scenario.index] + 1
        line = json.loads((tmp_path / "run" / "rejected.jsonl").read_text().splitlines()[0])
        assert line["reason"] in ("gate:short", "no_turns")
        assert {"gate:short": "turns < 8"}.get(line["reason"], line["detail"]) == line["detail"]

    def test_of_agents_the_whole_conversation_is_played_again(self, tmp_path: Path) -> None:
        job = JOB | {
            "prompt": None, "protocol": "selfplay", "conversations": 6, "selfplay": {"max_turns": 4},
            "gates": {"calm": "'zebra' not in text"},
        }  # fmt: skip
        asked: Counter[tuple[int, int, int]] = Counter()

        async def say(request: edgen.Request) -> str:
            place = request.address
            asked[place.scenario, place.step, place.attempt] += 1
            zebra = place.step == 3 and place.attempt < place.scenario
            return f"{'zebra' if zebra else 'horse'} {place.scenario} {place.step} number {place.attempt}"

        with pytest.raises(ShortError, match=r"3 of 6 conversations were accepted \(gate:calm 3\)"):
            edgen.generate(job, output=tmp_path / "run", backends={"default": say})
        assert max(asked.values()) == 1
        for scenario in range(6):
            tries = min(scenario + 1, 3)
            assert [a for s, step, a in sorted(asked) if (s, step) == (scenario, 0)] == [*range(tries)]
            assert [a for s, step, a in sorted(asked) if (s, step) == (scenario, 3)] == [*range(tries)]

    def test_replicates_that_leave_one_rest_on_what_it_came_to_first(self, tmp_path: Path) -> None:
        job = JOB | {
            "prompt": None, "protocol": "selfplay", "conversations": 6, "replicates": 2, "branch": {"at": 1},
            "selfplay": {"max_turns": 4}, "gates": {"one": "scenario.index < 3"}, "top_up": False,
        }  # fmt: skip
        with pytest.raises(ShortError, match=r"6 of 12 conversations were accepted \(gate:one 6\)"):
            edgen.generate(job, output=tmp_path / "run")
        assert edgen.open(tmp_path / "run").status.calls.made == 6 * (4 + 4)

    def test_what_nothing_passes_ends_with_a_sentence(self, tmp_path: Path) -> None:
        job = JOB | {
            "top_up": True,
            "asks": 1,
            "gates": {"short": "turns > 900", "new": "not near_duplicate"},
        }
        with pytest.raises(
            ShortError, match=r"0 of 24 .*gate:short 72.* None of the last .* passed, so no more are planned"
        ):
            edgen.generate(job, output=tmp_path / "run")


def labeller(asked: Counter[tuple[int, int, int]], levels: str) -> Any:
    """Return a labeller that answers attempt n of a scenario with a digit of `levels`; `x`:
    an unreadable answer."""

    async def label(request: edgen.Request) -> str:
        place = request.address
        asked[place.scenario, place.step, place.attempt] += 1
        level = levels[(place.scenario + place.attempt) % len(levels)]
        return "I do not know." if level == "x" else f'{{"1": "{level}"}}'

    return label


class TestLabels:
    """Gates on labels: labels are requested while conversations are made, kept with the run,
    and paid for once."""

    @staticmethod
    async def say(request: edgen.Request) -> str:
        return conversation(
            f"so{request.address.attempt}", turns=8 if request.address.scenario % 4 == 3 else 4
        )

    def make(self, folder: Path, asked: Counter[tuple[int, int, int]], **changes: Any) -> edgen.Run:
        levels = changes.pop("levels", "24351")
        job = JOB | {"gates": {"good": "labels.quality >= 3", "short": "turns < 8"}, "top_up": True} | changes
        backends = {"default": self.say, "annotator": labeller(asked, levels)}
        return edgen.generate(job, output=folder, backends=backends, progress=False, yes=True)

    def test_they_are_asked_for_where_all_else_holds_and_kept_as_a_layer(self, tmp_path: Path) -> None:
        asked: Counter[tuple[int, int, int]] = Counter()
        run = self.make(tmp_path / "run", asked, conversations=12, asks=2)
        assert max(asked.values()) == 1
        assert not [scenario for scenario, _, _ in asked if scenario % 4 == 3]
        file = tmp_path / "run" / "layers" / "quality" / "labels.jsonl"
        units = [json.loads(line) for line in file.read_text().splitlines()]
        accepted = [one.id for one in run.conversations()]
        assert ([unit["id"] for unit in units], len(accepted)) == (accepted, 12)
        assert all(unit["labels"] in (["3"], ["4"], ["5"]) and unit["turn"] is None for unit in units)
        assert all(unit["annotators"] == {"job:annotator": unit["labels"]} for unit in units)
        # A record names the backend of the conversation, not of the labels.
        with RunReader(tmp_path / "run") as reader:
            assert {one.provenance["backend"] for one in reader.conversations()} == {"function"}
            assert {one.provenance["attempts"] for one in reader.conversations()} == {1, 2}
        chosen = edgen.select(tmp_path / "run", tmp_path / "five", ["labels.quality == 5"])
        assert [one.id for one in chosen] == [unit["id"] for unit in units if unit["labels"] == ["5"]]
        # The file is rebuilt from stored labels; later annotators are added to it.
        before, calls = file.read_bytes(), asked.total()
        file.unlink()
        self.make(tmp_path / "run", asked, conversations=12, asks=2)
        assert (file.read_bytes(), asked.total()) == (before, calls)
        edgen.annotate(
            tmp_path / "run", "quality", unit="conversation", progress=False,
            backends={"annotator": labeller(Counter(), "2")},
        )  # fmt: skip
        both = [json.loads(line)["annotators"] for line in file.read_text().splitlines()]
        assert [one["job:annotator"] for one in both] == [unit["labels"] for unit in units]
        assert all(one["annotator"] == ["2"] for one in both)

    def test_a_changed_gate_asks_for_what_it_needs_beyond(self, tmp_path: Path) -> None:
        asked: Counter[tuple[int, int, int]] = Counter()
        gates = {"good": "labels.quality >= 2"}
        self.make(tmp_path / "run", asked, gates=gates, conversations=10, asks=1)
        planned = {scenario for scenario, _, _ in asked}
        self.make(tmp_path / "run", asked, gates={"good": "labels.quality >= 4"}, conversations=10, asks=1)
        assert max(asked.values()) == 1
        more = {scenario for scenario, _, _ in asked} - planned
        assert more
        assert min(more) > max(planned)

    def test_what_most_of_several_say_counts(self, tmp_path: Path) -> None:
        """Three annotators share an address; their answers are read by their steps."""
        said = {0: "5", 1: "1", 2: "5"}

        async def label(request: edgen.Request) -> str:
            return f'{{"1": "{said[request.address.step // 1000 % 10]}"}}'

        job = JOB | {"conversations": 3, "gates": {"good": "labels.rated == 5"}}
        job["labels"] = {"rated": {"set": "quality", "annotators": 3}}
        edgen.generate(job, output=tmp_path / "run", backends={"default": self.say, "annotator": label})
        for line in (tmp_path / "run" / "layers" / "rated" / "labels.jsonl").read_text().splitlines():
            names = ("job:annotator", "job:annotator-2", "job:annotator-3")
            assert json.loads(line)["annotators"] == dict(zip(names, (["5"], ["1"], ["5"]), strict=True))

    def test_labels_that_nobody_gives_are_told_apart(self, tmp_path: Path) -> None:
        """A layer without a gate is no condition. A gate on a missing layer fails, and the reason is that
        there are no labels."""
        asked: Counter[tuple[int, int, int]] = Counter()
        with pytest.raises(
            ShortError, match=r"0 of 3 .*\(no_labels 51\).*see the answers of the backend annotator"
        ):
            self.make(
                tmp_path / "run",
                asked,
                conversations=3,
                gates={"good": "labels.quality > 0"},
                levels="x",
                stop_when_useless=False,
            )
        assert asked.total() == 51 * JOB["asks"]
        line = json.loads((tmp_path / "run" / "rejected.jsonl").read_text().splitlines()[0])
        assert (line["reason"], line["detail"]) == ("no_labels", "quality: it labels nothing: I do not know.")
        assert "Teacher" in line["reply"]
        beside = {"labels": {"quality": {}}, "gates": {}, "conversations": 3}
        assert self.make(tmp_path / "beside", asked, **beside, levels="x").status.accepted == 3
        assert (tmp_path / "beside" / "layers" / "quality" / "labels.jsonl").read_bytes() == b""

    def test_a_labeller_that_labels_nothing_stops_the_run(self, tmp_path: Path) -> None:
        asked: Counter[tuple[int, int, int]] = Counter()
        with pytest.raises(UselessError, match=r"of the backend annotator are usable"):
            self.make(
                tmp_path / "run",
                asked,
                conversations=300,
                gates={"good": "labels.quality > 0"},
                levels="x",
                limits={"in_flight": 4},
            )
        assert asked.total() <= 400

    def test_arms_share_a_layer_and_nothing_is_left_to_do(self, tmp_path: Path) -> None:
        arms = {
            "plain": {},
            "good": {"gates": {"any": "labels.quality > 0"}},
            "moves": {"labels": {"teacher_moves": {}}},
        }
        job = JOB | {"conversations": 2, "arms": arms, "labels": {"quality": {}}}
        for _ in range(2):
            edgen.generate(job, output=tmp_path / "run", progress=False)
        units = (tmp_path / "run" / "layers" / "quality" / "labels.jsonl").read_text().splitlines()
        names = [json.loads(line)["id"] for line in units]
        assert names == [f"t.{arm}-{scenario:06}-r0" for scenario in range(2) for arm in arms]
        moves = (tmp_path / "run" / "layers" / "teacher_moves" / "labels.jsonl").read_text()
        assert {json.loads(line)["id"][:8] for line in moves.splitlines()} == {"t.moves-"}
        with LedgerReader(tmp_path / "run" / "arms" / "moves" / "run.db") as view:
            assert len(view.read_sessions()) == 1

    def test_what_pieces_have_is_the_layer_of_the_whole(self, tmp_path: Path) -> None:
        job = JOB | {"conversations": 6, "gates": {"good": "labels.quality > 0"}}
        for number, part in enumerate((range(4), range(2, 6))):
            edgen.generate(job, output=tmp_path / f"{number}", scenarios=part, progress=False)
        edgen.generate(job, output=tmp_path / "whole", progress=False)
        merge([tmp_path / "0", tmp_path / "1"], tmp_path / "merged")
        assert labels(tmp_path / "merged") == labels(tmp_path / "whole") != b""

    def test_no_layer_of_somebody_else_is_overwritten(self, tmp_path: Path) -> None:
        run, asked = tmp_path / "run", Counter[tuple[int, int, int]]()
        edgen.generate(JOB | {"conversations": 2}, output=run, progress=False)
        labels_of_its_own = edgen.annotate(run, "quality", unit="conversation", progress=False)
        before = labels_of_its_own.file.read_bytes()
        changes: dict[str, Any] = {"conversations": 2, "top_up": False, "levels": "4"}
        with pytest.raises(UsageError, match="this layer has other labels or units"):
            self.make(
                run,
                asked,
                gates={"good": "'4' in labels.quality"},
                labels={"quality": {"unit": "turn"}},
                **changes,
            )
        assert (labels_of_its_own.file.read_bytes(), asked.total()) == (before, 0)
        (run / "layers" / "mine").mkdir()
        (run / "layers" / "mine" / "labels.jsonl").write_bytes(before)
        with pytest.raises(UsageError, match="these labels are not the job's"):
            self.make(run, asked, labels={"mine": {"set": "quality"}}, **changes)

    def test_gates_in_order_see_labels(self, tmp_path: Path) -> None:
        """All conversations of one size are equal, and accepted if their label allows it."""
        asked: Counter[tuple[int, int, int]] = Counter()
        gates = {"new": "not near_duplicate or labels.quality == 5"}
        with pytest.raises(ShortError):
            self.make(tmp_path / "run", asked, gates=gates, asks=1, top_up=False, levels="51")
        kept = edgen.open(tmp_path / "run").conversations()
        assert [one.scenario.index for one in kept] == [0, 2, 3, *range(4, 24, 2)]


class TestInOrder:
    @pytest.fixture(scope="class")
    @classmethod
    def calm(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("gates") / "run"
        edgen.generate(JOB | {"top_up": True, "gates": GATES}, output=folder, backends={"default": cls.say})
        return folder

    @staticmethod
    async def say(request: edgen.Request) -> str:
        """Return one of twelve texts in two of three cases, else a unique one; a third of
        them are too long."""
        draw = random.Random(f"{request.address.scenario}/{request.address.attempt}")
        number = draw.randrange(12) if draw.random() < 0.67 else 100 + request.address.scenario
        words = [f"w{random.Random(f'{number}/{place}').randrange(999)}" for place in range(30)]
        return conversation(*words, turns=16 if draw.random() < 0.33 else 6)

    def test_the_asked_number_stands_and_one_of_each_kind(self, calm: Path) -> None:
        status = edgen.open(calm).status
        assert (status.state, status.accepted, status.pending) == ("complete", 24, 0)
        assert status.rejected.keys() == {"gate:new", "gate:short"} or status.rejected.keys() == {"gate:new"}
        assert status.planned == 24 + sum(status.rejected.values())
        said = [one.turns for one in edgen.open(calm).conversations()]
        assert len({*said}) == len(said) == 24
        lines = [json.loads(line) for line in (calm / "rejected.jsonl").read_text().splitlines()]
        assert {line["detail"] for line in lines if line["reason"] == "gate:new"} == {"not near_duplicate"}

    @pytest.mark.parametrize("in_flight", [1, 16])
    def test_the_order_of_arrival_does_not_count(self, calm: Path, tmp_path: Path, in_flight: int) -> None:
        async def say(request: edgen.Request) -> str:
            await asyncio.sleep(random.random() / 100)
            return await self.say(request)

        say.__qualname__, say.__module__ = self.say.__qualname__, self.say.__module__
        job = JOB | {"top_up": True, "gates": GATES, "limits": {"in_flight": in_flight}}
        edgen.generate(job, output=tmp_path / "run", backends={"default": say})
        assert records(tmp_path / "run") == records(calm)

    def test_what_failed_and_is_made_later_is_held_against_the_others_in_its_place(
        self, calm: Path, tmp_path: Path
    ) -> None:
        """Later conversations are decided again."""
        down = {0, 1, 5, 9}

        async def say(request: edgen.Request) -> str:
            if request.address.scenario in down:
                raise ValueError("no")
            return await self.say(request)

        job = JOB | {"top_up": True, "gates": GATES}
        say.__qualname__, say.__module__ = self.say.__qualname__, self.say.__module__
        job["limits"] = {"attempts": 1}
        status = edgen.generate(job, output=tmp_path / "run", backends={"default": say}).status
        assert sum(status.failed.values()) == 4
        assert status.accepted == 24
        assert records(tmp_path / "run") != records(calm)
        # A smaller number, and then the same again: the run is no longer full.
        down.clear()
        for count in (23, 24):
            edgen.generate(
                job, conversations=count, output=tmp_path / "run", backends={"default": say}, yes=True
            )
        assert records(tmp_path / "run") == records(calm)

    def test_gates_see_the_conversation_as_select_does(self, calm: Path, tmp_path: Path) -> None:
        """If everything is made in one round, a later selection keeps the same conversations as the gates."""
        both = JOB | {"conversations": 40, "asks": 1}
        with pytest.raises(ShortError):
            edgen.generate(both | {"gates": GATES}, output=tmp_path / "gated", backends={"default": self.say})
        edgen.generate(both, output=tmp_path / "all", backends={"default": self.say})
        chosen = edgen.select(tmp_path / "all", tmp_path / "chosen", [*GATES.values()])
        assert [one.turns for one in chosen] == [one.turns for one in edgen.open(tmp_path / "gated")]


class TestRefusals:
    @pytest.mark.parametrize(
        ("gates", "said"),
        [
            ({"good": "labels.qualty >= 3"}, "there is no labels.qualty here"),
            ({"good": "labels.quality == 'good'"}, "this compares a number with a text"),
            ({"good": "().__class__ == 1"}, "only names have parts"),
            ({"good": "__import__('os').system('x') == 0"}, "this function is unknown"),
            ({"good": "turns > " + "1" * 1_000_000}, "at most 2,000 characters"),
            ({"a": "trns > 3"}, "there is no trns here (did you mean 'turns'?)"),
            ({"a": "turns > 3", "b": "turns >"}, "$.gates.b: column"),
            ({"a": "open('x')"}, "this function is unknown"),
            ({"A b": "turns > 3"}, "$.gates"),
            ({"a": 3}, "$.gates.a"),
        ],
    )
    def test_what_is_no_gate_is_said_before_anything_is_asked(
        self, tmp_path: Path, gates: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(JobError) as caught:
            edgen.generate(JOB | {"gates": gates}, output=tmp_path / "run")
        assert said in str(caught.value)
        assert not (tmp_path / "run").exists()

    def test_values_that_do_not_go_together_are_said_with_the_conversation(self) -> None:
        """The run stops with this message; its answers are kept."""
        gates = read_gates({"high": "turns > 1 and outcome.grade > 3"}, EDUCATION, "job")
        turns = (Turn("Teacher", "So?"), Turn("Student", "So."))
        assert gates.refuse(Facts(Scenario(0, {}), Conversation(turns, outcome={"grade": 4}))) is None
        told = Facts(Scenario(0, {}), Conversation(turns, outcome={"grade": "four"}), "t-000000-r0")
        with pytest.raises(
            UsageError, match=r"gates\.high, of conversation t-000000-r0, column 31: this compares"
        ):
            gates.refuse(told)

    def test_pieces_and_merging(self, tmp_path: Path) -> None:
        job = JOB | {"conversations": 4, "gates": {"new": "not near_duplicate"}}
        with pytest.raises(UsageError, match="--range and a gate on near_duplicate do not go together"):
            edgen.generate(job, output=tmp_path / "run", scenarios=range(2))
        edgen.generate(job, output=tmp_path / "run")
        with pytest.raises(RunError, match="its job has a gate on near_duplicate"):
            merge([tmp_path / "run"], tmp_path / "merged")


def labels(run: Path) -> bytes:
    return (run / "layers" / "quality" / "labels.jsonl").read_bytes()


async def trouble(_: Service, seed: int) -> web.StreamResponse | None:
    """Answer half of the requests with one of eight texts."""
    if random.Random(seed).random() < 0.5:
        return None
    prompt = [Message("user", "Teacher: … Student: … Write a conversation about Physics. Probability:")]
    return served.completion(respond(prompt, seed=seed % 8).text)


async def killed_and_ended(folder: Path, kills: int, conversations: int) -> None:
    """Kill a job with gates repeatedly. The equation holds at each stop, and the bytes equal
    the undisturbed run's."""
    rng = random.Random(kills)
    async with served.serve(Service(latency=0.01, trouble=trouble)) as service:
        gates = {"short": "turns < 14", "good": "labels.quality >= 2", "new": "not near_duplicate"}
        changes = {"conversations": conversations, "gates": gates, "top_up": True, "asks": 2}
        job = served.write(
            folder / "job.yaml", served.job_text(service.url, **changes, limits={"in_flight": 8})
        )
        calm = await served.edgen("generate", job, "-o", folder / "calm", "--json")
        assert calm.code == 0, calm.err
        assert calm.facts["accepted"] == conversations
        assert {"gate:short", "gate:good", "gate:new"} <= {*calm.facts["rejected"]}
        calls = service.asked.total()
        for _ in range(kills):
            process = await served.start("generate", job, "-o", folder / "killed", "--json")
            aim = service.asked.total() + rng.randint(1, max(2, 2 * calls // kills))
            while process.returncode is None and service.asked.total() < aim:
                await asyncio.sleep(0.005)
            if process.returncode is None:
                process.kill()
            await served.end(process)
            if (folder / "killed" / "job.yaml").exists():
                assert equation(msgspec.to_builtins(read_status(folder / "killed")))
        ended = await served.edgen("generate", job, "-o", folder / "killed", "--json")
        assert ended.code == 0, ended.err
    counts = ("planned", "accepted", "rejected", "failed", "pending")
    assert [ended.facts[key] for key in counts] == [calm.facts[key] for key in counts]
    assert files(folder / "killed") == files(folder / "calm")
    rejected = [(folder / name / "rejected.jsonl").read_bytes() for name in ("killed", "calm")]
    assert rejected[0] == rejected[1]
    assert labels(folder / "killed") == labels(folder / "calm") != b""


@pytest.mark.long
@pytest.mark.crash
async def test_killed_again_and_again_a_run_with_gates_ends_with_the_same_bytes(tmp_path: Path) -> None:
    await killed_and_ended(tmp_path, dose(2, 6), 20)


@pytest.mark.crash
async def test_by_batch_and_online_the_same_bytes(tmp_path: Path) -> None:
    async with simulator("--batch-seconds", "0.3") as url:
        gates = {"short": "turns < 14", "good": "labels.quality >= 2", "new": "not near_duplicate"}
        job = JOB | {
            "conversations": 3,
            "top_up": True,
            "gates": gates,
            "backends": {"default": backend("openai", url)},
        }
        path = served.write(tmp_path / "job.yaml", json.dumps(job | {"batch": {"poll": "0.2s"}}))
        for via in ("online", "batch"):
            ended = await served.edgen("generate", path, "-o", tmp_path / via, "--via", via, "--json")
            assert ended.code == 0, ended.err
            assert ended.facts["accepted"] == 3
    assert files(tmp_path / "online") == files(tmp_path / "batch")
    assert labels(tmp_path / "online") == labels(tmp_path / "batch")
