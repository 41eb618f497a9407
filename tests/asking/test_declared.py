"""An asker that one class declares: one label a turn, through a ledger; nothing is asked twice."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

import edgen
from edgen.api.status import read_status
from edgen.asking.declared import TurnAsker, ask_run, estimate_asking
from edgen.asking.options import AskOptions
from edgen.asking.units import AskedUnit
from edgen.core.errors import CallError, FailureKind, ShortError, UsageError
from edgen.core.values import Rejection, Reply, Request
from edgen.protocols.base import unread
from edgen.protocols.fence import FENCED, fence_turns
from edgen.runtime.control import Control
from edgen.store.run_folder import RunFolder
from tests.cli.command import Command

JOB = {
    "name": "t", "seed": 3, "conversations": 4, "space": "education_dialogue", "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator"}}, "asks": 2,
}  # fmt: skip
TEMPLATE = "Is the last turn polite? Answer yes or no.\n{{ guarded }}\n"


class Polite(msgspec.Struct):
    """A label: is a turn polite or not."""

    polite: bool


class Politeness(TurnAsker):
    """An asker: is this turn polite?"""

    name = "politeness"
    template = "politeness.j2"
    variables = FENCED
    of = ("Teacher",)

    def ask(self, unit: AskedUnit) -> Generator[Request, Reply, msgspec.Struct | Rejection]:
        shown = fence_turns(self.rules.seed, unit.address.scenario, unit.address.task, unit.turns)
        return self.question(unit, shown, _read)


def _read(reply: Reply) -> Polite | Rejection:
    said = reply.text.strip().lower()
    return Polite(said == "yes") if said in ("yes", "no") else unread(reply, said)


class Model:
    """A model that finds turns with an even number of characters polite.

    It fails on the calls `fails`, and mumbles on `mumbles`.
    """

    def __init__(self, fails: tuple[int, ...] = (), mumbles: tuple[int, ...] = ()) -> None:
        self.calls, self.fails, self.mumbles = 0, fails, mumbles

    async def __call__(self, request: Request) -> str:
        self.calls += 1
        if self.calls in self.fails:
            raise CallError(FailureKind.CONTEXT_OVERFLOW, "too long")
        if self.calls in self.mumbles:
            return "perhaps"
        last = request.messages[-1].content.splitlines()[-2]
        return "no" if len(last) % 2 else "yes"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "politeness.j2").write_text(TEMPLATE)
    return edgen.generate(JOB, output=tmp_path / "run", progress=False).folder


def test_a_label_a_turn_and_nothing_is_asked_twice(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = AskOptions(prompt=str(tmp_path / "politeness.j2"))
    turns = [
        (one.id, place)
        for one in edgen.open(run)
        for place, turn in enumerate(one.turns)
        if turn.role == "Teacher"
    ]
    needs = estimate_asking(run, Politeness, Control(), options)
    assert (needs.stored, needs.missing, needs.expected, needs.at_most) == (
        0,
        len(turns),
        len(turns),
        2 * len(turns),
    )
    assert not (run / "asked").exists()

    model = Model(fails=(3,), mumbles=(5,))
    made = ask_run(run, Politeness, Control(functions={"default": model}), options)
    assert (made.lines, model.calls) == (len(turns) - 1, len(turns) + 1), "the mumbled one is asked again"
    with pytest.raises(ShortError, match=r"1 of \d+ units got no answer"):
        made.require_answers()

    rest = Model()
    made = ask_run(run, Politeness, Control(functions={"default": rest}), options)
    made.require_answers()
    assert rest.calls == 1
    lines = [json.loads(line) for line in made.file.read_text().splitlines()]
    assert [(line["id"], line["turn"]) for line in lines] == turns
    assert {line["polite"] for line in lines} == {True, False}
    assert {line["answerer"] for line in lines} == {made.status.answerer}
    assert estimate_asking(run, Politeness, Control(functions={"default": rest}), options).missing == 0

    (status,) = read_status(run).asked or ()
    assert (status.asker, status.answered, status.pending) == ("politeness", len(turns), 0)
    said = f"asked      politeness, {status.answerer}: {len(turns)} of {len(turns)} answered, 0 pending"
    assert said in Command(capsys)("status", run).out
    assert run / "asked" / "politeness" / f"{status.answerer}.db" in RunFolder(run).ledgers()


def test_a_key_that_does_not_count_is_a_sentence(run: Path, tmp_path: Path) -> None:
    options = AskOptions(prompt=str(tmp_path / "politeness.j2"), overrides=("shards.train=2",))
    with pytest.raises(
        UsageError, match="does not apply to politeness of an existing run; these do: backends"
    ):
        ask_run(run, Politeness, Control(), options)
