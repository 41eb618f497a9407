"""Folders of machines for tests, and random machines."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from edgen.domains.guided.machines.model import Condition, Effect, End, Lock, Machine, State, Variable


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write these files into a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def random_machine(seed: int, most: int = 12) -> Machine:
    """Return a valid machine that uses every feature; the same seed gives the same machine."""
    rng = random.Random(seed)
    names = [f"s{number}" for number in range(rng.randint(2, most))]
    subtasks = tuple(f"part {number}" for number in range(rng.randint(0, 3)))
    world = {
        "level": Variable(kind="number", initial=float(rng.randint(0, 3)), least=0, most=5, sees=("Wizard",), label="L"),
        "door": Variable(kind="choice", initial="open", values=("open", "shut")),
        "lit": Variable(kind="boolean", initial=bool(rng.getrandbits(1)), sees=("Wizard", "Operator")),
        "who": Variable(kind="text", sees=("Operator",)),
    }  # fmt: skip

    def some(most: int) -> tuple[str, ...]:
        return tuple(rng.sample(names, min(len(names), rng.randint(0, most))))

    def when() -> dict[str, Condition]:
        kinds = [
            {},
            {"door": Condition(one_of=("open",))},
            {"level": Condition(at_least=1, below=4)},
            {"lit": Condition(one_of=(True,)), "door": Condition(one_of=("open", "shut"))},
            {"level": Condition(one_of=(0.0, 2.5))},
        ]
        return rng.choice(kinds)

    def effect() -> Effect:
        late = rng.choice([{}, {"after_seconds": 7.5}, {"after_turns": 2, "repeat": True}])
        new = rng.choice([{"door": "shut"}, {"lit": True, "level": 2.0}, {"who": "Ä “q” \U0001f600 #: no"}])
        return Effect(set=new, add=rng.choice([{}, {"level": -1.5}]), when=when(), **late)  # type: ignore[arg-type]

    def state(name: str) -> State:
        leads = some(4)
        lock = rng.choice(
            [None, None, Lock(), Lock(says=("yes", "{who}"), lacks=("no",), label="Guess", otherwise=some(2))]
        )
        return State(
            name=name,
            formulations=(f"Say {name}: {{who}}", "yes")[: rng.randint(1, 2)],
            transitions=leads,
            probabilities={one: round(rng.random(), 3) for one in leads if rng.random() < 0.8},
            subtask=rng.choice([None, *subtasks]),
            slots=rng.choice([(), ("who",)]),
            lock=lock,
            effects=tuple(effect() for _ in range(rng.randint(0, 2))),
            when=when(),
            advances=rng.choice([None, *subtasks]),
            end=rng.choice([None, None, End(reason="done", success=True), End(reason="x", when=when())]),
            act=rng.choice([None, "request"]),
        )  # fmt: skip

    start = State(name="start", transitions=tuple(rng.sample(names, min(2, len(names)))))
    return Machine(
        name=f"random {seed}",
        description=rng.choice([None, "Two lines\nof it."]),
        states=dict(sorted({one.name: one for one in (start, *map(state, names))}.items())),
        fixed={"okay": "Okay", "no": "No", "": "odd", "BC": ""},
        world=world,
        needs=("who.name",),
        subtasks=subtasks,
        ends=rng.choice([(), (End(reason="lost", success=False, when={"level": Condition(at_least=5)}),)]),
        time_limit=rng.choice([None, 300.0, 12.5]),
        questionnaire=rng.choice([None, "crwiz"]),
    )
