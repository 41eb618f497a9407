"""Runs to report on: small ones by the simulator, and one whose every text attacks the page."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.execution.service import ROOT, Ended, Service, completion, edgen, job_text, serve, write

QUICKSTART = ROOT / "jobs" / "quickstart.yaml"

ATTACKS = (
    "<script>window.ran = 1; alert(1)</script>",
    "</style></script><script src='http://127.0.0.1:9/x.js'></script>",
    "<svg onload='window.ran = 1'><a xlink:href='javascript:window.ran=1'>x</a></svg>",
    "<img src='http://127.0.0.1:9/x.png' onerror='window.ran = 1'>",
    "</text></svg><iframe src='http://127.0.0.1:9/'></iframe> $x^2$ {{ 7*7 }} {% raw %}",
    "\u202ereversed\u202c \x1b[31mred\x07 \u0000null ]]> <!-- &lt;b&gt; --> var(--ink) #0e1d01",
)


def attacks(place: int) -> str:
    return ATTACKS[place % len(ATTACKS)]


def hostile(folder: Path, conversations: int = 24) -> Path:
    """Make a run in which topics, preferences, turns and rejected replies all contain markup and scripts."""

    async def planted(_service: Service, seed: int) -> web.StreamResponse | None:
        if seed % 4 == 0:
            return completion(f"I cannot help with that. {attacks(seed)} " + "x" * 3000)
        lines = [
            f"{('Teacher', 'Student')[turn % 2]}: turn {turn} of {seed}: {attacks(seed + turn)}"
            for turn in range(8)
        ]
        return completion("\n".join([*lines, "Probability: 0.4"]))

    folder.mkdir(parents=True, exist_ok=True)
    space: dict[str, Any] = {
        "name": "hostile",
        "topics": [f"{place} {clean(text)}" for place, text in enumerate(ATTACKS)],
        "student_preferences": [clean(text) for text in ATTACKS[:4]],
        "student_reactions": ["and gets <b>rude</b> otherwise", "but might $adapt$"],
        "teacher_preferences": [clean(text) for text in ATTACKS[2:]],
        "teacher_reactions": ["and insists <i>on it</i>", "but might adapt & change"],
    }
    write(folder / "space.yaml", json.dumps(space))
    return generated(
        folder, Service(trouble=planted), name="hostile", conversations=conversations, space="./space.yaml"
    )


_LONG = ("a value that is three hundred characters long, with many words, " * 5)[:300].strip()
_AWKWARD: dict[str, Any] = {
    "name": "awkward",
    "topics": [
        "الأعداد الصحيحة والكسور العشرية في الرياضيات",
        "שברים פשוטים ומספרים עשרוניים",
        "分数の足し算と引き算、そして小数の計算について学ぶ授業の話題",
        "x" * 120,
        _LONG,
    ],
    "student_preferences": ["hands-on " + "e" * 60, "講義中心の授業 " + "長" * 40],
    "student_reactions": ["and gets rude otherwise", ("وإلا يغضب " * 12).strip()],
    "teacher_preferences": [_LONG[:280].strip(), "lectures"],
    "teacher_reactions": ["and insists on it", "but might adapt"],
}


def awkward(folder: Path) -> Path:
    """Make a run that is difficult to lay out.

    It has twelve arms with names of the greatest allowed length, some of them identical, and extreme values.
    """
    arms: dict[str, Any] = {}
    for place in range(12):
        faults = {"backends": {"default": {"faults": f"refusal={place / 20}"}}}
        arms[f"an-arm-with-a-name-as-long-as-allowed-{place:02d}"] = (
            faults if place % 3 else {"asks": place + 1}
        )
    job = {
        "name": "awkward", "seed": 3, "conversations": 12, "space": "./space.yaml", "prompt": "education_dialogue",
        "asks": 1, "backends": {"default": {"type": "simulator"}}, "arms": arms,
    }  # fmt: skip
    write(folder / "space.yaml", json.dumps(_AWKWARD))
    return made(folder / "run", job=write(folder / "job.yaml", json.dumps(job)), n=12)


def judged(folder: Path) -> Path:
    """Make a run of self-play with pairs by two judges and people's votes, and with a layer of labels."""
    run = made(folder / "run", job=ROOT / "jobs" / "selfplay.yaml", n=12)
    votes = write(
        folder / "votes.jsonl",
        "\n".join(
            json.dumps(
                {"a": f"selfplay-{n:06d}-r0", "b": f"selfplay-{n:06d}-r1", "choice": "a", "rater": "r1"}
            )
            for n in range(12)
        ),
    )
    for options in (
        ("annotate", run, "--labels", "teacher_moves", "--by", "judge", "--annotators", "2", "--sample", "6"),
        ("pairs", run, "--by", "human", "--human", votes),
        ("pairs", run, "--by", "oracle", "--prompt", "oracle_conversation"),
        ("pairs", run, "--by", "oracle", "--set", "backends.judge.faults=judge_first=0.4"),
    ):
        ended = asyncio.run(edgen(*options))
        assert ended.code == 0, ended.err
    return run


def generated(folder: Path, service: Service, **changes: Any) -> Path:
    """Make a run against a service on this machine; each scenario is requested once."""

    async def generate() -> Ended:
        async with serve(service):
            job = job_text(service.url, **{"asks": 1, **changes})
            return await edgen("generate", write(folder / "job.yaml", job), "-o", folder / "run")

    ended = asyncio.run(generate())
    assert ended.code in (0, 3), ended.err
    return folder / "run"


def clean(text: str) -> str:
    """Return the text without characters that a space may not contain."""
    return "".join(char for char in text if char.isprintable())


def made(folder: Path, *options: str, job: Path = QUICKSTART, n: int = 40) -> Path:
    """Make a run by the simulator, with any outcome."""
    ended = asyncio.run(edgen("generate", job, "-n", str(n), "-o", folder, *options))
    assert ended.code in (0, 3, 4), ended.err
    return folder
