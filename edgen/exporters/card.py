"""The card of an export: a README.md that `datasets.load_dataset` and people read.

The front matter names the files of each table and split; the text says what the rows are, how many there
are, what was left out and why, what the data was made with, what of it a simulator made, what a judge
compared, how to load it, what became of what was planned, what is known to be wrong with it, and how to make
it again. A licence and a language stand there only where the user named one.

The keys of the front matter: https://huggingface.co/docs/hub/datasets-cards
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import yaml

from edgen.exporters.base import REASONS, SPLITS, Config, Format, Run, SplitName
from edgen.exporters.caveats import SETTLED, caveats, outcomes, unfinished
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


# The hub's own classes of size, by the number of rows at which the next one begins.
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B",
          "10B<n<100B", "100B<n<1T", "n>1T")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What only the person who exports can say: a licence, and the language as a BCP 47 code."""

    license: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What was written: rows of each table by split, what was left out by reason, the path pattern of each
    table's split, rows by what stands behind them, notes that depend on the rows, the bytes of a table's
    split in memory, where they are known, and the digest of each table's rows."""

    rows: Rows
    left_out: Mapping[str, int]
    patterns: Patterns
    evidence: Mapping[Evidence, int]
    notes: Sequence[str] = ()
    sizes: Mapping[tuple[str, SplitName], int] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)


def card(format_: Format, run: Run, voice: Voice, contents: Contents, stated: Stated) -> str:
    """The whole text of the card."""
    simulated = simulated_parts(run.simulated, contents.evidence)
    facts = run.describe()
    title = run.name if format_.files == "hub" else f"{run.name}: {format_.name}"
    lines = [f"# {title}", "", format_.summary, ""]
    if simulated:
        lines += [f"**{_BANNERS[simulated]}**", ""]
    judged = what_was_judged(format_.level, contents.evidence)
    lines += [judged, ""] if judged else []
    lines += [
        *_rows(contents.rows),
        "",
        _licence(stated),
        "",
        *_left_out(contents.left_out, format_, facts),
        "",
    ]
    lines += [*_columns(format_), "", "## Use", "", "```", *format_.use.splitlines(), "```", ""]
    lines += [f"- {note}" for note in (*_notes(format_, voice), *contents.notes)]
    lines += ["", "## How it was made", "", *_facts(facts, simulated, voice, format_)]
    lines += [*_labels(contents.evidence), "", *outcomes(facts)]
    lines += ["## Known limits", "", *(f"- {limit}" for limit in caveats(facts, run.job)), ""]
    lines += ["## How to make it again", "", *_again(format_, facts.get("range"))]
    head = front_matter(run.name, format_, contents, bool(simulated), stated)
    return head + "\n" + "\n".join(lines).rstrip() + "\n"


def front_matter(name: str, format_: Format, contents: Contents, simulated: bool, stated: Stated) -> str:
    """The YAML block at the top. A split without rows has no file and is not named."""
    head: dict[str, Any] = {"pretty_name": name}
    if stated.license is not None:
        head["license"] = stated.license
    if stated.language is not None:
        # The hub takes the language alone, and what is more of it beside.
        head["language"] = [stated.language.split("-")[0]]
        if "-" in stated.language:
            head["language_details"] = [stated.language]
    if format_.tasks:
        head["task_categories"] = list(format_.tasks)
    head["size_categories"] = [_size(sum(contents.rows[format_.configs[0].name].values()))]
    head["tags"] = keywords(format_, simulated)
    tables = [config for config in format_.configs if _files(config, contents)]
    if tables:
        head["configs"] = [
            {
                "config_name": config.name,
                **({"default": True} if config is format_.configs[0] else {}),
                # Without it, `datasets` takes other rows in a folder of this name for these.
                "description": f"sha256-{contents.digests[config.name]}",
                "data_files": _files(config, contents),
            }
            for config in tables
        ]
    infos = [_info(config, contents) for config in tables if config.kinds]
    if infos:
        head["dataset_info"] = infos
    return "---\n" + yaml.safe_dump(head, sort_keys=False, allow_unicode=True) + "---\n"


def keywords(format_: Format, simulated: bool) -> list[str]:
    """The tags of a data set."""
    return ["edgen", "synthetic", "education", *format_.tags, *(["simulated"] if simulated else [])]


def _files(config: Config, contents: Contents) -> list[dict[str, str]]:
    return [
        {"split": split, "path": contents.patterns[config.name, split]}
        for split in SPLITS
        if (config.name, split) in contents.patterns
    ]


def _info(config: Config, contents: Contents) -> dict[str, Any]:
    """The types of a table's columns, and its rows, by which `datasets` finds that a file is missing. It takes no
    rows without bytes; those are as they were in memory here, and a reader may need some more or fewer."""
    turns = [{"name": "role", "dtype": "string"}, {"name": "text", "dtype": "string"}]
    features = [
        {"name": name, "list": turns} if kind == "turns" else {"name": name, "dtype": kind}
        for name, kind in config.kinds.items()
    ]
    rows = contents.rows[config.name]
    splits = [
        {"name": split, "num_bytes": contents.sizes[config.name, split], "num_examples": rows[split]}
        for split in SPLITS
        if (config.name, split) in contents.sizes
    ]
    return {"config_name": config.name, "features": features, **({"splits": splits} if splits else {})}


def _size(rows: int) -> str:
    return next((name for i, name in enumerate(_SIZES[:-1]) if rows < 10 ** (i + 3)), _SIZES[-1])


def _licence(stated: Stated) -> str:
    if stated.license is None:
        return "No licence was stated for this data."
    return f"Licence, as stated by whoever exported it: {_code(stated.license)}."


def _rows(rows: Rows) -> Iterator[str]:
    yield "| table | train | test |"
    yield "|---|---|---|"
    for name, counts in rows.items():
        yield f"| {name} | {counts['train']} | {counts['test']} |"


def _left_out(left_out: Mapping[str, int], format_: Format, facts: Mapping[str, Any]) -> Iterator[str]:
    yield "## Left out"
    yield ""
    for sentence in unfinished(facts):
        yield f"**{sentence}**"
        yield ""
    if not left_out:
        which = "accepted conversations" if format_.of == "conversations" else format_.of
        yield f"Nothing: all {which} that the run has are here."
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


def _facts(
    facts: Mapping[str, Any], simulated: Sequence[Part], voice: Voice, format_: Format
) -> Iterator[str]:
    shown = {key: value for key, value in facts.items() if key not in (*SETTLED, "not_begun")}
    if format_.of != "pairs" and isinstance(shown.get("job"), Mapping):
        shown["job"] = {**shown["job"], "pairs": None}
    for key, value in _flat(_public({**shown, "simulated": " and ".join(simulated) or False})):
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


def _again(format_: Format, part: str | None) -> Iterator[str]:
    """With what of the run's folder, and by which commands. `part`: the range of a piece."""
    yield "The run's folder holds its job and the texts of its templates and space. They are known by the sha256 above:"
    yield ""
    pairs = ["edgen pairs AGAIN --by ..."] if format_.of == "pairs" else []
    export = f"edgen export AGAIN --to {format_.name} -o DIR"
    generate = "edgen generate RUN/job.yaml -o AGAIN" + (f" --range {part}" if part else "")
    yield from ("```", generate, *pairs, export, "```", "")
    yield (
        "Scenarios and split come out the same, and so does what a simulator wrote, to the byte. Another model may "
        "answer otherwise when it is asked again. Where conversations of RUN are pending, AGAIN has those too."
    )


def _public(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts without those of a job that say nothing of the data: limits, addresses, names of keys."""
    job = facts.get("job")
    if not isinstance(job, Mapping):
        return dict(facts)
    shown = {key: job[key] for key in _OF_JOB if job.get(key) not in (None, {}, [])}
    if job.get("protocol") != "selfplay":
        shown.pop("selfplay", None)
    backends = job.get("backends", {})
    shown["backends"] = {
        role: {key: backend[key] for key in _OF_BACKEND if backend.get(key) is not None}
        for role, backend in backends.items()
    }
    shown |= _inputs(job, job.get("resolved") or {})
    arms = facts.get("arms") or {}
    changes = job.get("arms") or {}
    made = {
        name: {"changes": _changes(changes[name]), **_inputs({}, arms.get(name) or {})} for name in changes
    }
    return {**facts, "job": shown, "arms": made}


def _inputs(job: Mapping[str, Any], resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Which space and templates it was, as noted when it was made, or else as the job names them."""
    space = resolved.get("space") or (None if job.get("arms") else job.get("space"))
    prompts = (
        resolved.get("prompts") or job.get("prompts") or {"": resolved.get("prompt") or job.get("prompt")}
    )
    names = sorted({_named(prompt) for prompt in prompts.values() if prompt})
    shown = {"space": _named(space) or None, "prompts": ", ".join(names) or None}
    return shown | {key: resolved.get(key) for key in _OF_RESOLVED} | _templates(resolved)


def _templates(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """The sha256 of each template by its use where there are several: what is noted of all is the hash of no file."""
    each = resolved.get("templates") or {}
    return {"template_sha256": each} if each and resolved["template_sha256"] not in each.values() else {}


def _changes(changes: Mapping[str, Any]) -> str:
    """What an arm lays over the job, as far as it is of the data."""
    prompts = {key: _named(changes[key]) for key in ("prompt", "space") if isinstance(changes.get(key), str)}
    if isinstance(changes.get("prompts"), Mapping):
        prompts["prompts"] = ", ".join(sorted({_named(str(name)) for name in changes["prompts"].values()}))
    own = {key: changes[key] for key in _OF_JOB if key in changes}
    backends = changes.get("backends")
    for role, backend in backends.items() if isinstance(backends, Mapping) else ():
        if isinstance(backend, Mapping):
            own |= {f"{role}.{key}": backend[key] for key in (*_OF_BACKEND, "faults") if key in backend}
    return ", ".join(f"{key}={value}" for key, value in (prompts | own).items()) or "the job as it is"


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
