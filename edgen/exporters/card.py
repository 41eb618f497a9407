"""The card of an export: a README.md that `datasets.load_dataset` and people read.

The front matter names the files of each table and split; the text says what the rows are, how many there
are, what was left out and why, what the data was made with, what of it a simulator made, what a judge
compared, and how to load it. A licence stands there only where the user named one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import yaml

from edgen.exporters.base import REASONS, SPLITS, Format, Run, SplitName
from edgen.exporters.evidence import Evidence, Part, simulated_parts, what_was_judged
from edgen.exporters.voice import Voice

# What of a job and of a backend shaped the data.
_OF_JOB = ("name", "seed", "conversations", "replicates", "protocol", "design", "selfplay", "branch", "asks",
           "split", "pairs")  # fmt: skip
_OF_RESOLVED = ("edgen", "space_sha256", "template_sha256", "fingerprint")
_OF_BACKEND = ("type", "model", "temperature", "top_p", "top_k", "max_tokens")

# By the parts that a simulator made.
_BANNERS: Mapping[tuple[Part, ...], str] = {
    ("conversations",): "A simulator wrote these conversations. They are for rehearsal, not for training.",
    ("labels",): "A simulated judge gave the labels of these conversations, which no simulator wrote. "
    "The labels are for rehearsal, not for training.",
    ("conversations", "labels"): "A simulator wrote these conversations and had a part in their labels. "
    "Both are for rehearsal, not for training.",
}

Rows = Mapping[str, Mapping[str, int]]
Patterns = Mapping[tuple[str, SplitName], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What was written: rows of each table by split, what was left out by reason, the path pattern of each
    table's split, rows by what stands behind them, and notes that depend on the rows."""

    rows: Rows
    left_out: Mapping[str, int]
    patterns: Patterns
    evidence: Mapping[Evidence, int]
    notes: Sequence[str] = ()


def card(format_: Format, run: Run, voice: Voice, contents: Contents, license_: str | None) -> str:
    """The whole text of the card."""
    simulated = simulated_parts(run.simulated, contents.evidence)
    lines = [f"# {run.name}: {format_.name}", "", format_.summary, ""]
    if simulated:
        lines += [f"**{_BANNERS[simulated]}**", ""]
    judged = what_was_judged(format_.level, contents.evidence)
    lines += [judged, ""] if judged else []
    lines += [*_rows(contents.rows), "", *_left_out(contents.left_out, format_), ""]
    lines += [*_columns(format_), "", "## Use", "", "```", *format_.use.splitlines(), "```", ""]
    lines += [f"- {note}" for note in (*_notes(format_, voice), *contents.notes)]
    lines += ["", "## How it was made", "", *_facts(run, simulated, voice, format_)]
    lines += _labels(contents.evidence)
    head = front_matter(format_, contents.patterns, bool(simulated), license_)
    return head + "\n" + "\n".join(lines).rstrip() + "\n"


def front_matter(format_: Format, patterns: Patterns, simulated: bool, license_: str | None) -> str:
    """The YAML block at the top. A split without rows has no file and is not named."""
    configs = []
    for i, config in enumerate(format_.configs):
        files = [
            {"split": split, "path": patterns[config.name, split]}
            for split in SPLITS
            if (config.name, split) in patterns
        ]
        if files:
            entry: dict[str, Any] = {"config_name": config.name}
            if i == 0:
                entry["default"] = True
            configs.append({**entry, "data_files": files})
    head: dict[str, Any] = {"configs": configs}
    head["tags"] = [
        "edgen",
        "synthetic",
        "education",
        *format_.tags,
        *(["simulated"] if simulated else []),
    ]
    if license_ is not None:
        head["license"] = license_
    return "---\n" + yaml.safe_dump(head, sort_keys=False, allow_unicode=True) + "---\n"


def _rows(rows: Rows) -> Iterator[str]:
    yield "| table | train | test |"
    yield "|---|---|---|"
    for name, counts in rows.items():
        yield f"| {name} | {counts['train']} | {counts['test']} |"


def _left_out(left_out: Mapping[str, int], format_: Format) -> Iterator[str]:
    yield "## Left out"
    yield ""
    if not left_out:
        yield f"Nothing: all {format_.of} of the run are here."
        return
    yield "| reason | count | which means |"
    yield "|---|---|---|"
    for reason, count in left_out.items():
        yield f"| {_cell(reason)} | {count} | {REASONS.get(reason, '')} |"


def _columns(format_: Format) -> Iterator[str]:
    yield "## Columns"
    for config in format_.configs:
        yield ""
        if len(format_.configs) > 1:
            yield f"Table `{config.name}`:"
            yield ""
        for name, meaning in config.columns.items():
            yield f"- `{name}`: {meaning}"


def _notes(format_: Format, voice: Voice) -> Iterator[str]:
    yield from format_.notes
    if not format_.voiced:
        return
    other = "student" if voice.train == "Teacher" else "teacher"
    yield f"The trained side is the {voice.train.lower()} (assistant); the {other} is the user."
    opening = {
        "user": "Where the trained side speaks first, an opening line by the user stands before it.",
        "system": "Each conversation opens with a system message; where the trained side speaks first, it does so "
        "right behind it, which some chat templates refuse.",
        "both": "Each conversation opens with a system message; where the trained side speaks first, a line by the "
        "user stands between.",
    }
    yield opening[voice.opening]
    yield "Two turns running of one side are one message, joined by a blank line. No message holds the end marker."


def _facts(run: Run, simulated: Sequence[Part], voice: Voice, format_: Format) -> Iterator[str]:
    facts = {**run.describe(), "simulated": " and ".join(simulated) or False}
    for key, value in _flat(_public(facts)):
        yield f"- {_cell(key)}: {_code(value)}"
    if format_.voiced:
        yield f"- opening template: {_code(voice.prompt.name)}, sha256 {_code(voice.prompt.sha256)}"


def _labels(evidence: Mapping[Evidence, int]) -> Iterator[str]:
    """Who gave the preferences of how many rows."""
    rows: Counter[str] = Counter()
    for one, count in evidence.items():
        rows[str(one)] += count
    for who, count in sorted(rows.items()):
        yield f"- rows with a preference by {_code(who)}: {count}"


def _public(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts without those of a job that say nothing of the data: limits, addresses, names of keys."""
    job = facts.get("job")
    if not isinstance(job, Mapping):
        return dict(facts)
    shown = {key: job[key] for key in _OF_JOB if job.get(key) not in (None, {}, [])}
    backends = job.get("backends", {})
    shown["backends"] = {
        role: {key: backend[key] for key in _OF_BACKEND if backend.get(key) is not None}
        for role, backend in backends.items()
    }
    shown["arms"] = ", ".join(job.get("arms") or {}) or None
    resolved = job.get("resolved") or {}
    shown["space"] = _named(resolved.get("space") or job.get("space"))
    prompts = resolved.get("prompts") or job.get("prompts") or {"": job.get("prompt")}
    shown["prompts"] = ", ".join(sorted({_named(prompt) for prompt in prompts.values() if prompt})) or None
    shown |= {key: resolved.get(key) for key in _OF_RESOLVED}
    return {**facts, "job": shown}


def _named(file: str | None) -> str:
    """A template's or space's name, without the folder it was in: that is nobody else's business."""
    return PurePath(file or "").stem


def _flat(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        elif value is not None:
            yield f"{above}{key}", value


def _code(value: Any) -> str:
    """A value that others chose, as it is and without a meaning in Markdown."""
    text = "yes" if value is True else "no" if value is False else str(value)
    return "`" + " ".join(text.replace("`", "'").split()) + "`"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").replace("`", "'").split())
