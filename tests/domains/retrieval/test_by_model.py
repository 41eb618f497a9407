"""`edgen baseline --by model`: how answers are read, invalid answers, and the same bytes in every mode."""

from __future__ import annotations

import contextlib
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgen
from edgen.config import parse_job
from edgen.core.errors import ShortError
from edgen.core.resources import find
from edgen.core.values import Rejection, RejectionReason, Reply, Request
from edgen.domains.retrieval.ranking_asker import (
    ModelRanking,
    RankingAsker,
    write_ranking,
)
from edgen.domains.retrieval.ranking_protocol import TEMPLATE, VARIABLES, Order, list_windows, read_order
from edgen.execution.batch.scheduler import BatchScheduler
from edgen.execution.online_scheduler import make_online_scheduler
from edgen.execution.session import RunSession
from edgen.prompting import load_prompt
from edgen.store.ledger import Ledger
from tests.cli.command import Command
from tests.domains.retrieval.submissions import truth_file
from tests.domains.retrieval.test_baseline import example, written
from tests.execution.batch.desk import Desk
from tests.execution.players import KilledError, Players


def set_of(folder: Path, count: int, candidates: int = 25) -> tuple[Path, Path]:
    """Write this number of examples and their right answers."""
    rng = random.Random(4)
    made = [example(rng, number, 3, candidates) for number in range(count)]
    truth = truth_file(folder / "truth.tsv", {str(one["example-id"]): [right] for one, right in made})
    return written(folder / "examples.json", [one for one, _ in made]), truth


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("[2] > [3] > [1]", Order((1, 2, 0))),
        ("The order is:\n\n**[2]** > [3] > [1]\n\nI hope that helps with all 3!", Order((1, 2, 0))),
        ("<think>[1] > [2] > [3]?</think>\n[2] > [3] > [1]", Order((1, 2, 0))),
        ("2 > 3 > 1", Order((1, 2, 0))),
        ("Of the 3 candidates: 2, 3, 1", Order((1, 2, 0))),
        ("[2, 3, 1]", Order((1, 2, 0))),
        ("2\n3\n1\n", Order((1, 2, 0))),
        ("[3]", Order((2, 0, 1), missing=2)),
        ("3.", Order((2, 0, 1), missing=2)),
        ("[3] > [0] > [3] > [17]", Order((2, 0, 1), unknown=2, repeated=1, missing=2)),
        ("Candidate [3] fits best, since it answers.", Order((2, 0, 1), missing=2)),
    ],
)
def test_what_an_answer_is_read_as(text: str, order: Order) -> None:
    assert read_order(Reply(text), 3) == order


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply("I would say that number 3 is the best."), RejectionReason.UNREAD),
        (Reply("[7] > [8]"), RejectionReason.UNREAD),
        (Reply("1 1 2 3 5 8 13 21 34 55"), RejectionReason.UNREAD),
        (Reply(" \n"), RejectionReason.UNREAD),
        (Reply("[3] > [1] >", finish_reason="length"), RejectionReason.TRUNCATED),
        (Reply("", refusal="I cannot."), RejectionReason.REFUSED),
    ],
)
def test_what_is_no_order(reply: Reply, reason: RejectionReason) -> None:
    found = read_order(reply, 3)
    assert isinstance(found, Rejection)
    assert found.reason is reason


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(["1", "[2]", "[[", "3", "]", ">", " ", ",", "99999999999", "x", "\n"])),
    st.integers(1, 5),
)
def test_an_order_has_every_candidate_once(pieces: list[str], count: int) -> None:
    found = read_order(Reply("".join(pieces)), count)
    if isinstance(found, Order):
        assert sorted(found.places) == [*range(count)]


def test_windows_slide_to_the_front() -> None:
    """RankGPT's windows: 20 candidates at a time in steps of 10, so nine windows for a hundred."""
    assert [*list_windows(3)] == [(0, 3)]
    assert [*list_windows(20)] == [(0, 20)]
    assert [*list_windows(21)] == [(1, 21), (0, 11)]
    hundred = [*list_windows(100)]
    assert (len(hundred), hundred[0], hundred[-1]) == (9, (80, 100), (0, 20))


def test_the_model_s_order_is_what_is_written_and_scored(command: Command, tmp_path: Path) -> None:
    examples, truth = set_of(tmp_path, 8)
    ended = command("baseline", examples, "-o", tmp_path / "m.json", "--by", "model", "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)["asked"]
    assert (told["ranked"], told["windows"], told["calls"]["made"], told["simulated"]) == (8, 16, 16, True)
    found = edgen.score(truth, tmp_path / "m.json", candidates=25, examples=examples)
    assert found.sound
    first = (tmp_path / "m.json").read_bytes()
    again = command("baseline", examples, "-o", tmp_path / "m.json", "--by", "model")
    assert "0 made" not in again.out  # counts include all starts
    assert "16 made" in again.out
    assert (tmp_path / "m.json").read_bytes() == first
    ended = command("baseline", examples, "-o", tmp_path / "n.json", "--by", "model", "--none")
    ranked = json.loads((tmp_path / "n.json").read_text())
    assert all(
        sum(one["candidate-id"] == "NONE" for one in entry["candidate-ranking"]) == 1 for entry in ranked
    )
    assert edgen.score(truth, tmp_path / "n.json", candidates=25).sound


def test_answers_that_are_none_are_counted_and_what_was_never_read_has_no_ranking(tmp_path: Path) -> None:
    examples, truth = set_of(tmp_path, 3)
    asked: list[Request] = []

    async def odd(request: Request) -> str:
        """Answer the second example with prose only, and the first list of the third."""
        asked.append(request)
        number, step = request.address.scenario, request.address.step
        if number == 1 or (number, step) == (2, 0):
            return "They are all good."
        return "[5] > [5] > [77] > [1]"

    with pytest.raises(ShortError, match=r"no answer could be read: 1 \(unread 1\)"):
        edgen.baseline(
            examples, tmp_path / "m.json", by="model", asks=2, backends={"default": odd}, progress=False
        )
    assert len(asked) == 2 + 2 * 2 + 2 + 1
    ranked = {
        one["example-id"]: one["candidate-ranking"] for one in json.loads((tmp_path / "m.json").read_text())
    }
    assert ranked.keys() == {"0", "2"}
    # In the third example, the last window kept BM25's order.
    edgen.baseline(examples, tmp_path / "bm25.json")
    bm25 = {
        one["example-id"]: one["candidate-ranking"]
        for one in json.loads((tmp_path / "bm25.json").read_text())
    }
    order, first = ([one["candidate-id"] for one in of["2"]] for of in (ranked, bm25))
    assert order == [first[4], first[0], *first[1:4], *first[5:]]
    found = edgen.score(truth, tmp_path / "m.json", candidates=25)
    assert [one.kind for one in found.findings] == ["missing_example"]


async def test_the_bytes_are_the_same_however_it_is_asked(tmp_path: Path) -> None:
    """Online runs at two concurrencies, batch runs and resumed runs give the same bytes; no request is sent
    twice."""
    examples, _ = set_of(tmp_path, 4)
    entries = msgspec.json.decode(examples.read_bytes(), type=list[msgspec.Raw])

    async def make(name: str, players: Players, desk: Desk | None = None, in_flight: int = 8) -> bytes:
        job: dict[str, Any] = {
            "name": "b", "conversations": 1, "space": "-", "prompt": "-", "batch": {"poll": "0.02s"},
            "limits": {"in_flight": in_flight}, "backends": {"default": {"type": "simulator"}},
        }  # fmt: skip
        out = tmp_path / f"{name}.json"
        prompt = load_prompt(find("prompts", TEMPLATE), VARIABLES)
        asker = RankingAsker(parse_job(job, "job.yaml"), prompt, out, entries=entries, source="e")
        scheduler = (
            make_online_scheduler if desk is None else partial(BatchScheduler, services={"default": desk})
        )
        path = tmp_path / f"{name}.db"
        async with Ledger(path) as ledger:
            session = RunSession(asker, {"default": players}, ledger, roles=("default",), scheduler=scheduler)
            await asker.work_through(session)
        made = write_ranking(asker, path)
        assert isinstance(made, ModelRanking)
        return (tmp_path / f"{name}.json").read_bytes()

    whole = Players()
    made = await make("whole", whole, in_flight=1)
    assert whole.calls == 8
    assert await make("side", Players()) == made
    assert await make("batch", Players(), Desk()) == made
    with contextlib.suppress(KilledError):
        await make("killed", Players(5))
    rest = Players()
    assert await make("killed", rest) == made
    assert rest.calls == 3


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--by", "bm25", "--none"], 2, "--method bm25 asks no model"),
        (["--by", "chance", "--set", "asks=2"], 2, "--method chance asks no model"),
        (["--by", "model", "--backend", "nothing.yaml"], 2, "nothing.yaml"),
        (["--by", "model", "--prompt", "label_turns"], 2, "expects"),
        (["--by", "model", "--via", "batch"], 2, "has no batch service"),
        (["--by", "model", "--set", "backends.default={type: simulator, faults: garbage=1}"], 3, "None of the 2 examples was ranked"),
    ],
)  # fmt: skip
def test_mistakes_are_sentences(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], code: int, told: str
) -> None:
    examples, _ = set_of(tmp_path, 2)
    ended = Command(capsys)("baseline", examples, "-o", tmp_path / "m.json", *options)
    assert (ended.code, told in ended.err) == (code, True), ended.err
    assert not (tmp_path / "m.json").exists()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)
