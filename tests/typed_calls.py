"""Calls of the Python functions whose signatures are generated, right ones and wrong ones. mypy checks this file with
edgen (`make types`): an error that no longer occurs is an unused `type: ignore`, which is an error. Nothing runs it.
"""

from __future__ import annotations

import edgen


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
