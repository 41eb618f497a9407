"""Random submissions, and their scores computed from the definitions, example by example."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Answers = Mapping[str, Sequence[str]]
Rankings = Mapping[str, Sequence[str]]


def drawn(
    rng: random.Random, examples: int = 20, candidates: int = 100
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return right answers and rankings; some examples have several answers, some lack them in the ranking,
    some lack a ranking."""
    answers, rankings = {}, {}
    for number in range(examples):
        pool = [f"C{one:04X}" for one in rng.sample(range(0x10000), candidates)]
        ids = rng.sample(pool, rng.choice((1, 1, 1, 2, 5)))
        if rng.random() < 0.1:
            ids = ["NONE"]
            pool[rng.randrange(candidates)] = "NONE"
        elif rng.random() < 0.2:
            pool[pool.index(ids[0])] = "ELSE"
        answers[str(number)] = ids
        if rng.random() < 0.95:
            rankings[str(number)] = pool
    return answers, rankings


def truth_file(path: Path, answers: Answers) -> Path:
    path.write_text("".join(f"{example}\t{','.join(ids)}\tany words\n" for example, ids in answers.items()))
    return path


def submission(rankings: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [
        {
            "example-id": example,
            "candidate-ranking": [
                {"candidate-id": one, "confidence": round(1 - place / 1000, 3)}
                for place, one in enumerate(ids)
            ],
        }
        for example, ids in rankings.items()
    ]


def submission_file(path: Path, rankings: Mapping[str, Sequence[Any]]) -> Path:
    path.write_text(json.dumps(submission(rankings)))
    return path


def by_definition(answers: Answers, rankings: Rankings) -> dict[str, float]:
    """Return recall at k, MRR, MAP and DSTC7's MAP, computed from their definitions."""
    n = len(answers)
    sums = dict.fromkeys(("R@1", "R@2", "R@5", "R@10", "R@50", "R@100", "MRR", "MAP", "MAP by the file"), 0.0)
    for example, ids in answers.items():
        ranking = [*rankings.get(example, ())]
        for k in (1, 2, 5, 10, 50, 100):
            sums[f"R@{k}"] += any(one in ranking[:k] for one in ids)
        sums["MRR"] += max((1 / (ranking.index(one) + 1) for one in ids if one in ranking), default=0)
        for number, one in enumerate(ids, 1):
            if one in ranking:
                upto = ranking[: ranking.index(one) + 1]
                sums["MAP"] += sum(other in upto for other in ids) / len(upto) / len(ids)
                sums["MAP by the file"] += number / len(upto) / len(ids)
    return {name: value / n for name, value in sums.items()}
