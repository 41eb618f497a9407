"""Askers with a real model, for `python -m bench real`.

Judges, labels, writers, rollouts, rankings, scores and growth. Each asks about a few simulated
conversations. The ledgers that it leaves are measured.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec
import yaml

import edgen
from edgen.api.spaces.growth import grow_space
from edgen.asking.declared import DeclaredAsker, ask_run
from edgen.asking.options import AskOptions, GrowthOptions
from edgen.asking.units import AskedUnit
from edgen.core.values import Rejection, Reply, Request
from edgen.protocols.rubric import VARIABLES, Criterion, Judged, score_by_rubric
from edgen.runtime.control import Control

Backends = dict[str, dict[str, Any]]

_TALKS = {
    "name": "talks", "design": "even", "space": "education_dialogue", "protocol": "selfplay",
    "prompts": {"teacher": "selfplay_teacher", "student": "selfplay_student"},
    "selfplay": {"first": "teacher", "max_turns": 6}, "replicates": 2, "branch": {"at": 1},
    "backends": {"default": {"type": "simulator"}}, "limits": {"in_flight": 1}, "stop_when_useless": False,
}  # fmt: skip


def talks(folder: Path, scenarios: int, seed: int) -> edgen.Run:
    """Return a run of short conversations by the simulator, two for each scenario."""
    job = {**_TALKS, "seed": seed, "conversations": scenarios}
    return edgen.generate(job, output=folder / "talks", progress=False)


def _count(run: edgen.Run) -> int:
    """Return the number of conversations: 6, or a share of them."""
    return sum(1 for _ in run.conversations())


def _judge(run: edgen.Run, settings: dict[str, Any]) -> None:
    run.pairs("oracle", progress=False, **settings)


def _labels(run: edgen.Run, settings: dict[str, Any]) -> None:
    edgen.annotate(run, "teacher_moves", progress=False, **settings)


def _labels_of_conversations(run: edgen.Run, settings: dict[str, Any]) -> None:
    edgen.annotate(run, "quality", unit="conversation", progress=False, **settings)


def _paraphrases(run: edgen.Run, settings: dict[str, Any]) -> None:
    edgen.candidates(run, "paraphrases", count=2, sample=max(1, _count(run) // 3), progress=False, **settings)


def _wrong(run: edgen.Run, settings: dict[str, Any]) -> None:
    edgen.candidates(run, "wrong", count=2, sample=max(1, _count(run) // 3), progress=False, **settings)


def _adherence(run: edgen.Run, settings: dict[str, Any]) -> None:
    run.stats(judge=2 * _count(run) // 3, progress=False, **settings)


def _rollouts(run: edgen.Run, settings: dict[str, Any]) -> None:
    """Continue conversations from a turn; the simulator judges where they end."""
    run.pairs("oracle", credit="rollouts", rollouts=1, progress=False, **settings)


class _Scores(msgspec.Struct):
    scores: dict[str, float]


class _Rubric(DeclaredAsker):
    """Score each conversation by two criteria."""

    name = "rubric"
    template = "rubric"
    variables = (*VARIABLES, "index", "topic", "student_preference", "student_reaction", "teacher_preference",
                 "teacher_reaction")  # fmt: skip
    criteria = (
        Criterion("clear", "The teacher explains clearly."),
        Criterion("kind", "The teacher is kind."),
    )

    def ask(self, unit: AskedUnit) -> Generator[Request, Reply, _Scores | Rejection]:
        """Ask for the scores."""
        index, task = unit.address.scenario, unit.address.task
        judged = Judged(self.reader.space, self.reader.scenario(index), task, unit.turns)
        scores = yield from score_by_rubric(judged, self.criteria, self.prompt, self.rules)
        return scores if isinstance(scores, Rejection) else _Scores(scores)


def _rubric(run: edgen.Run, settings: dict[str, Any]) -> None:
    overrides = (f"backends={json.dumps(settings['backends'])}", f"forms={settings['forms']}")
    ended = ask_run(run.folder, _Rubric, Control(), AskOptions(overrides=overrides)).ended
    if ended is not None:
        raise ended


def _ranking(run: edgen.Run, settings: dict[str, Any]) -> None:
    """Rank five candidates for the last turn of each conversation."""
    rng, said = random.Random(7), [[turn.text for turn in one.turns] for one in run.conversations()]
    rows = []
    for number, texts in enumerate(said):
        others = [other[-1] for other in rng.sample(said, len(said)) if other is not texts][:4]
        named = [
            {"candidate-id": f"{number}-{place}", "utterance": text}
            for place, text in enumerate([*others, texts[-1]])
        ]
        before = [
            {"speaker": f"participant_{1 + place % 2}", "utterance": text}
            for place, text in enumerate(texts[:-1])
        ]
        rows.append(
            {
                "data-split": "test",
                "example-id": number,
                "messages-so-far": before,
                "options-for-next": named,
                "options-for-correct-answers": named[-1:],
                "scenario": 1,
            }
        )
    file = run.folder.parent / "examples.json"
    file.write_text(json.dumps(rows))
    job = _job_file(run.folder.parent, settings)
    edgen.baseline(file, run.folder.parent / "ranked.json", by="model", backend=str(job), progress=False)


def _growth(run: edgen.Run, settings: dict[str, Any]) -> None:
    """Ask for ten more topics, or as many times more or fewer as there are conversations."""
    folder = run.folder.parent
    options = GrowthOptions(
        dimension="topic", count=max(1, round(10 / 6 * _count(run))), backend=str(_job_file(folder, settings)), output=folder / "grown.yaml"
    )  # fmt: skip
    grow_space("education_dialogue", options, Control())


def _job_file(folder: Path, settings: dict[str, Any]) -> Path:
    """Return a job whose default backend is the one that is measured, with the seed of the conversations."""
    path, seed = folder / "asked.yaml", yaml.safe_load((folder / "talks" / "job.yaml").read_text())["seed"]
    path.write_text(yaml.safe_dump({**_TALKS, **settings, "seed": seed, "conversations": 1}))
    return path


ASKERS: dict[str, tuple[str, Callable[[edgen.Run, dict[str, Any]], None]]] = {
    "judge": ("judge", _judge),
    "labels": ("annotator", _labels),
    "labels_of_conversations": ("annotator", _labels_of_conversations),
    "rubric": ("judge", _rubric),
    "adherence": ("judge", _adherence),
    "ranking": ("default", _ranking),
    "paraphrases": ("writer", _paraphrases),
    "wrong_replies": ("writer", _wrong),
    "rollouts": ("default", _rollouts),
    "growth": ("default", _growth),
}
