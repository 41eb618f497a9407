"""The runs that are damaged, and the commands that read each."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.measure import simulator

Edgen = Callable[
    ..., None
]  # runs `edgen` with these words, and ends the campaign unless it succeeds; a batch may be left out

JOB = """\
name: flips
seed: 5
conversations: 3
replicates: 2
branch: {at: sampled}
space: education_dialogue
protocol: selfplay
prompts: {teacher: selfplay_teacher, student: selfplay_student}
selfplay: {first: teacher, max_turns: 4, closing: student}
backends:
  default: {type: simulator}
  judge: {type: simulator}
arms:
  plain: {}
  longer: {selfplay: {max_turns: 5}}
"""
GATED = """\
name: gated
seed: 6
conversations: 8
space: education_dialogue
prompt: education_dialogue
protocol: oneshot
split: {test: 0.5}
backends: {default: {type: simulator}}
gates: {good: "labels.quality >= 2"}
labels: {quality: {}}
asks: 2
"""
GUIDED = """\
name: guided
seed: 7
conversations: 3
space: incident_response
protocol: guided
guided: {machine: incident_response, turns: 8}
backends: {default: {type: simulator}}
"""
BATCH = """\
name: batch
seed: 8
conversations: 8
space: education_dialogue
prompt: education_dialogue
protocol: oneshot
batch: {{poll: 0.1s}}
limits: {{max_tokens: 10_000_000}}
backends:
  default: {{type: openai, model: m, base_url: '{url}', max_tokens: 3000, seed: auto, price: {{prompt: 1, completion: 5}}}}
"""


class Reading(NamedTuple):
    """A command that reads a run: its name in the table, and its words.

    In the words, {run} is the run, {arm} an arm of it, {out} a new folder or file, and `{folder}` the folder
    in which the run was made.
    """

    name: str
    words: tuple[str, ...]

    def arguments(self, run: Path, out: Path, folder: Path) -> list[str]:
        """Return the words of the command for a run."""
        places = {"run": run, "arm": run / "arms" / "plain", "out": out / "made", "folder": folder}
        return [word.format(**places) for word in self.words]


class Kind(NamedTuple):
    """A kind of run: how it is made in a folder, and the commands that read it."""

    name: str
    make: Callable[[Path, Edgen], Path]
    readings: tuple[Reading, ...]


ASKED = ("--signal", "oracle", "--credit", "rollouts", "--rollouts", "1")
PEOPLE = ("--labels", "teacher_moves", "--layer", "moves")
LABELS = (*PEOPLE, "--backend", "default")
TEXTS = ("--write", "paraphrases", "--agent", "Teacher", "--after", "1")


def _reading(name: str, *words: str) -> Reading:
    return Reading(name, words)


def _make_selfplay(folder: Path, edgen: Edgen) -> Path:
    """Make a run with arms, pairs, rollouts, votes, layers, written texts and judged adherence."""
    (folder / "job.yaml").write_text(JOB)
    run = folder / "run"
    edgen("generate", folder / "job.yaml", "-o", run)
    edgen("pairs", run, *ASKED)
    edgen("annotate", run, *LABELS)
    people = folder / "ann.csv"
    edgen("annotate", run, *PEOPLE, "--sheet", people, "--sample", "2")
    _fill_in(people)
    edgen("annotate", run, *PEOPLE, "--people", people)
    edgen("annotate", run / "arms" / "plain", *TEXTS)
    votes = folder / "votes.jsonl"
    pairs = [json.loads(line) for line in (run / "pairs" / "pairs.jsonl").open()]
    cast = [{"a": p["a"]["id"], "b": p["b"]["id"], "choice": "a", "rater": "one"} for p in pairs[:6]]
    votes.write_text("".join(json.dumps(vote) + "\n" for vote in cast))
    edgen("pairs", run, "--signal", "human", "--people", votes)
    edgen("pairs", run, *ASKED)
    edgen("stats", run, "--adherence", "2")
    return run


def _fill_in(sheet: Path) -> None:
    """Fill in a sheet as a person does."""
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        for row in rows:
            writer.writerow({**row, "labels": "probing"})


_ANY_RUN = (
    _reading("validate", "validate", "{run}", "--json"),
    _reading("status", "status", "{run}", "--json"),
    _reading("stats", "stats", "{run}", "--json"),
    _reading("report", "report", "{run}", "-o", "{out}"),
    _reading("generate", "generate", "{folder}/job.yaml", "-o", "{run}", "--json"),
    _reading("generate copy", "generate", "{run}/job.yaml", "-o", "{out}", "--json"),
    _reading("merge", "merge", "{run}", "-o", "{out}", "--json"),
    _reading("export csv", "export", "{run}", "--to", "csv", "-o", "{out}"),
)

SELFPLAY = Kind(
    "selfplay",
    _make_selfplay,
    (
        _reading("pairs", "pairs", "{run}", *ASKED, "--json"),
        _reading("pairs by people", "pairs", "{run}", "--signal", "human", "--json"),
        _reading("pairs report", "pairs", "{run}", "--report", "--json"),
        _reading("annotate", "annotate", "{run}", *LABELS, "--json"),
        _reading("annotate by people", "annotate", "{run}", *PEOPLE, "--people", "{folder}/ann.csv", "--json"),
        _reading("layer report", "annotate", "{run}", "--layer", "moves", "--json"),
        _reading("texts", "annotate", "{arm}", *TEXTS, "--json"),
        _reading("stats --adherence", "stats", "{run}", "--adherence", "2", "--json"),
        _reading("compare", "compare", "{run}", "-o", "{out}", "--prompts", "--json"),
        _reading("export trl-dpo", "export", "{run}", "--to", "trl-dpo", "-o", "{out}"),
        _reading("export sft", "export", "{arm}", "--to", "sft", "-o", "{out}"),
        _reading("export intents", "export", "{run}", "--to", "dialogue-acts", "--layer", "moves", "-o", "{out}"),
        _reading("select", "select", "{arm}", "--where", "turns > 2", "-o", "{out}", "--json"),
        _reading("estimate", "estimate", "{run}/job.yaml", "--json"),
        _reading("show", "show", "{run}", "1"),
        *_ANY_RUN,
    ),
)  # fmt: skip


def _make_gated(folder: Path, edgen: Edgen) -> Path:
    """Make a run whose conversations pass a gate on labels, with a test side."""
    (folder / "job.yaml").write_text(GATED)
    edgen("generate", folder / "job.yaml", "-o", folder / "run")
    return folder / "run"


def _make_chosen(folder: Path, edgen: Edgen) -> Path:
    """Make a run that was chosen from another."""
    _make_gated(folder, edgen)
    edgen("select", folder / "run", "--draw", "4", "-o", folder / "chosen")
    return folder / "chosen"


def _make_merged(folder: Path, edgen: Edgen) -> Path:
    """Make a run that was merged from two pieces that overlap."""
    (folder / "job.yaml").write_text(GATED)
    for name, part in (("one", "0:5"), ("two", "3:8")):
        edgen("generate", folder / "job.yaml", "--range", part, "-o", folder / name)
    edgen("merge", folder / "one", folder / "two", "-o", folder / "merged")
    return folder / "merged"


def _make_guided(folder: Path, edgen: Edgen) -> Path:
    """Make a run led by a state machine, whose file the run keeps."""
    (folder / "job.yaml").write_text(GUIDED)
    edgen("generate", folder / "job.yaml", "-o", folder / "run")
    return folder / "run"


def _make_batch(folder: Path, edgen: Edgen) -> Path:
    """Make a run by a batch service that refuses some requests and fails at others.

    A second batch is left under way.
    """
    run = folder / "run"
    with simulator("--batch-seconds", "2", "--faults", "refusal=0.2,404=0.1,500=0.2") as url:
        (folder / "job.yaml").write_text(BATCH.format(url=url))
        edgen("generate", folder / "job.yaml", "-o", run, "--via", "batch")
        edgen("generate", folder / "job.yaml", "-o", run, "-n", "12", "--via", "batch", "--for", "1s")
    return run


_EXPORTS = (
    _reading("export dstc7", "export", "{run}", "--to", "dstc7", "--candidates", "3", "-o", "{out}"),
    _reading("export sft", "export", "{run}", "--to", "sft", "-o", "{out}"),
)
_SELECT = _reading("select", "select", "{run}", "--where", "turns > 2", "-o", "{out}", "--json")
_OTHER = _reading("merge of two", "merge", "{run}", "{folder}/two", "-o", "{out}", "--json")
_NOT_MADE_BY_JOB = tuple(one for one in _ANY_RUN if one.name.split()[0] not in ("generate", "merge"))

KINDS = (
    SELFPLAY,
    Kind("batch", _make_batch, _NOT_MADE_BY_JOB),
    Kind("gated", _make_gated, (*_ANY_RUN, *_EXPORTS, _SELECT)),
    Kind("chosen", _make_chosen, (*_NOT_MADE_BY_JOB, *_EXPORTS, _SELECT)),
    Kind("merged", _make_merged, (*_ANY_RUN, *_EXPORTS, _SELECT, _OTHER)),
    Kind(
        "guided",
        _make_guided,
        (*_ANY_RUN, _SELECT, _reading("machine learn", "machine", "learn", "{run}", "-o", "{out}")),
    ),
)
