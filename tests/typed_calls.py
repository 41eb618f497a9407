"""Calls of the Python functions whose signatures are generated, right ones and wrong ones.

mypy checks this file with edgen (`make types`): an error that no longer occurs is an unused `type: ignore`,
which is an error. The file is never run.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import edgen


async def answer(request: edgen.Request) -> str:
    return request.messages[0].content


def show(event: edgen.Event) -> None:
    print(event.name, event.text, event.facts)


def use_what_comes_back() -> None:
    job = edgen.Job(name="mine", conversations=2, space="education_dialogue", prompt="education_dialogue")
    run: edgen.Run = edgen.generate(job, backends={"default": answer}, on_event=show, seed=3)
    accepted: int = run.status.accepted
    topics = [conversation.scenario["topic"] for conversation in run.conversations()]
    folder: Path = run.folder
    comparison: edgen.Comparison = edgen.compare(run, edgen.open(folder))
    print(accepted, topics, comparison.metrics)
    asyncio.run(edgen.agenerate({"name": "other"}, output=folder))
    try:
        run.pairs(by="oracle")
    except edgen.errors.ShortError as error:
        print(error.exit_code)


def call_everything(run: edgen.Run) -> None:
    edgen.generate("job.yaml", conversations=2, seed=3, on=None, backends={"default": {"type": "simulator"}})
    edgen.generate("job.yaml", workers="two")  # type: ignore[arg-type]
    edgen.compare("a", run, arms=["x"], roles={"Agent": "Tutor"})
    edgen.compare("a", arm="x")  # type: ignore[call-arg]
    edgen.annotate(run, "moves", people="a.csv", limits={"in_flight": 2})
    edgen.annotate(run, unit="word")  # type: ignore[arg-type]
    edgen.candidates(run, "wrong", count=2)
    edgen.select(run, "b", "turns > 3", drawn=2)  # type: ignore[call-arg]
    run.stats(["overview"], judge=2, asks=1)
    run.stats(judge="two")  # type: ignore[arg-type]
    run.export("hf", output="b", train="student", subtask=2)
    run.export("hf", "b", workers=None)  # type: ignore[arg-type]
    pairs: edgen.Pairs = run.pairs("oracle", min_turns_left=2)
    run.pairs("oracle", credit=pairs)  # type: ignore[arg-type]


async def call_in_a_loop() -> edgen.Run:
    return await edgen.agenerate("job.yaml", scenarios=range(3))
