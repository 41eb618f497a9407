"""The card of an export: a README.md for people and `datasets.load_dataset`.

The front matter names the files of each table and split. The text covers rows and their number, omissions
with reasons, the making of the data, simulated parts, texts that a judge compared, loading, outcomes of the
plan, known limits, and commands to make the export again. A licence and a language are stated only if the
user named one.

The keys of the front matter: https://huggingface.co/docs/hub/datasets-cards
"""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from edgen.core.registry import part_of
from edgen.core.text import escape_invisible, escape_markdown
from edgen.export.caveats import (
    SETTLED,
    flatten_facts,
    list_caveats,
    list_unfinished,
    select_public_facts,
    tabulate_outcomes,
)
from edgen.export.chat import DO_THIS, Chat
from edgen.export.evidence import Evidence, Part, describe_judged, list_simulated_parts
from edgen.export.files import Patterns
from edgen.export.format import Format
from edgen.export.labellers import describe_labellers
from edgen.export.options import OptionValues, list_given_flags
from edgen.export.rows import SPLITS, ColumnType, DataTable, SplitName
from edgen.export.shared_options import ActionOptions, ExportOptions, LayerOptions
from edgen.families.base import Family
from edgen.families.reader import ReportWords
from edgen.space import Space
from edgen.store.run_reader import RunReader

# The sentence on simulation, by the simulated parts.
_BANNERS: Mapping[tuple[Part, ...], str] = {
    ("conversations",): "A simulator wrote these conversations. They are for rehearsal, not for training.",
    ("labels",): "A simulated judge gave the labels of these conversations, which no simulator wrote. "
    "The labels are for rehearsal, not for training.",
    ("conversations", "labels"): "A simulator wrote these conversations and had a part in their labels. "
    "Both are for rehearsal, not for training.",
}

Counts = dict[str, dict[str, int]]

# The hub's size classes, by the number of rows at which the next one begins.
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B",
          "10B<n<100B", "100B<n<1T", "n>1T")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The written contents."""

    tables: Sequence[DataTable]
    """Its tables."""
    rows: Counts
    """Rows of each table by split."""
    left_out: dict[str, int]
    """Omissions by reason."""
    patterns: Patterns
    """The path pattern of each table's split."""
    evidence: Mapping[Evidence, int]
    """Rows by their evidence."""
    notes: Sequence[str] = ()
    """Notes that depend on the rows."""
    sizes: Mapping[tuple[str, SplitName], int] = field(default_factory=dict)
    """Bytes of a table's split in memory, if known."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The digest of each table's rows."""


def write_card(format_: Format, run: RunReader, chat: Chat, contents: Contents, options: OptionValues) -> str:
    """Return the whole text of the card."""
    stated = options.of(ExportOptions)
    simulated = list_simulated_parts(contents.evidence, of_run=run.simulated)
    facts = run.describe()
    words = part_of(run.family, ReportWords)
    judged = describe_judged(format_.layout.level, contents.evidence, words.hearer)
    lines = [
        f"# {run.name if format_.card.hub else f'{run.name}: {format_.name}'}",
        "",
        format_.summary,
        "",
        *([f"**{_BANNERS[simulated]}**", ""] if simulated else []),
        *([judged, ""] if judged else []),
        *_describe_counts(contents.rows),
        "",
        _render_licence(stated.license),
        "",
        *_list_left_out(contents.left_out, format_, facts),
        "",
        *_describe_tables(contents.tables),
        *("", "## Scenarios", "", *describe_space(run.space)),
        *("", "## Use", "", "```", *format_.use.splitlines(), "```", ""),
        *(f"- {note}" for note in (*_list_notes(format_, chat, run.family), *contents.notes)),
        *_list_trials(format_),
        *("", "## How it was made", ""),
        *_describe_facts(facts, simulated, chat, format_),
        *_describe_labels(contents.evidence, describe_labellers(run, format_, contents.evidence)),
        "",
        *tabulate_outcomes(facts),
        *("## Known limits", "", *(f"- {limit}" for limit in list_caveats(facts, run.job, run.space)), ""),
        *("## How to make it again", "", *_list_repeat_commands(format_, facts, options)),
    ]
    head = render_front_matter(run, format_, contents, stated, simulated=bool(simulated))
    return head + "\n" + "\n".join(lines).rstrip() + "\n"


def render_front_matter(
    run: RunReader, format_: Format, contents: Contents, options: ExportOptions, *, simulated: bool
) -> str:
    """Return the YAML block at the top. A split without rows has no file and is not named."""
    head: dict[str, Any] = {"pretty_name": run.name}
    if options.license is not None:
        head["license"] = options.license
    if options.language is not None:
        # The hub accepts only the language; script and region are stated separately.
        head["language"] = [options.language.split("-")[0]]
        if "-" in options.language:
            head["language_details"] = [options.language]
    if format_.card.tasks:
        head["task_categories"] = list(format_.card.tasks)
    head["size_categories"] = [_describe_size(sum(contents.rows[contents.tables[0].name].values()))]
    head["tags"] = list_keywords(format_, run, simulated=simulated)
    tables = [table for table in contents.tables if _list_files(table, contents)]
    if tables:
        head["configs"] = [
            {
                "config_name": table.name,
                **({"default": True} if table is contents.tables[0] else {}),
                # Without it, `datasets` confuses these rows with others in a folder of this name.
                "description": f"sha256-{contents.digests[table.name]}",
                "data_files": _list_files(table, contents),
            }
            for table in tables
        ]
    infos = [_describe_columns(table, contents) for table in tables if table.types]
    if infos:
        head["dataset_info"] = infos
    return "---\n" + yaml.safe_dump(head, sort_keys=False, allow_unicode=True) + "---\n"


def list_keywords(format_: Format, run: RunReader, *, simulated: bool) -> list[str]:
    """Return the tags of a data set."""
    tags = part_of(run.family, ReportWords).tags
    each = ("edgen", "synthetic", *tags, *format_.card.tags, *(["simulated"] if simulated else []))
    return list(dict.fromkeys(each))


def _list_files(table: DataTable, contents: Contents) -> list[dict[str, str]]:
    return [
        {"split": split, "path": contents.patterns[table.name, split]}
        for split in SPLITS
        if (table.name, split) in contents.patterns
    ]


def digest_table(table: DataTable, patterns: Patterns, folder: Path) -> str:
    """Return the SHA-256, in hex, over the files of a table in `folder`: split, name and content of each, in
    order of names.

    `datasets.load_dataset` caches its result under the folder's last name and the card's description of the
    table, not by the files' contents. A digest of the rows in the card distinguishes exports to folders of
    one name.
    """
    made = hashlib.sha256()
    for split in SPLITS:
        pattern = patterns.get((table.name, split))
        for path in sorted(folder.glob(pattern)) if pattern is not None else ():
            made.update(f"{split} {path.relative_to(folder).as_posix()} {digest_file(path)}\n".encode())
    return made.hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _describe_columns(table: DataTable, contents: Contents) -> dict[str, Any]:
    """Return the types of a table's columns, and its rows, by which `datasets` detects a missing file. Rows
    require bytes: here the size in memory, which may differ slightly for a reader."""
    features = [{"name": name, **_make_feature(kind)} for name, kind in table.types.items()]
    rows = contents.rows[table.name]
    splits = [
        {"name": split, "num_bytes": contents.sizes[table.name, split], "num_examples": rows[split]}
        for split in SPLITS
        if (table.name, split) in contents.sizes
    ]
    return {"config_name": table.name, "features": features, **({"splits": splits} if splits else {})}


def _make_feature(kind: ColumnType) -> dict[str, Any]:
    """Return a type as `datasets` writes it, as a new object: the first reader would modify one shared by
    YAML reference."""
    match kind:
        case "turns":
            return {"list": [{"name": "role", "dtype": "string"}, {"name": "text", "dtype": "string"}]}
        case "labels":
            return {"list": "string"}
        case "turn_labels":
            return {"list": {"list": "string"}}
    return {"dtype": kind}


def _describe_size(rows: int) -> str:
    return next((name for i, name in enumerate(_SIZES[:-1]) if rows < 10 ** (i + 3)), _SIZES[-1])


def _render_licence(license_: str | None) -> str:
    if license_ is None:
        return "No licence was stated for this data."
    return f"Licence, as stated at export: {_render_code(license_)}."


def _describe_counts(rows: Counts) -> Iterator[str]:
    yield "| table | train | test |"
    yield "|---|---|---|"
    for name, counts in rows.items():
        yield f"| {_render_cell(name)} | {counts['train']} | {counts['test']} |"


def _list_left_out(left_out: Mapping[str, int], format_: Format, facts: Mapping[str, Any]) -> Iterator[str]:
    yield "## Left out"
    yield ""
    for sentence in list_unfinished(facts):
        yield f"**{sentence}**"
        yield ""
    if not left_out:
        which = "accepted conversations" if format_.of == "conversations" else format_.of
        yield f"Nothing: all {which} of the run are included."
        return
    yield "| reason | count | meaning |"
    yield "|---|---|---|"
    for reason, count in left_out.items():
        yield f"| {_render_cell(reason)} | {count} | {format_.meaning(reason)} |"


def _describe_tables(tables: Sequence[DataTable]) -> Iterator[str]:
    yield "## Columns"
    for table in tables:
        yield ""
        if len(tables) > 1:
            yield f"Table {_render_code(table.name)}:"
            yield ""
        for name, meaning in table.columns.items():
            yield f"- {_render_code(name)}: {meaning}"


def describe_space(space: Space) -> Iterator[str]:
    """Yield the dimensions of scenarios, each with its number of values and its roles."""
    yield f"Each is one draw from the space {_render_code(space.name)}:"
    yield ""
    yield "| dimension | values | for |"
    yield "|---|---|---|"
    for one in space.dimensions:
        name = f"{one.name} ({one.label})" if one.label else one.name
        roles = ", ".join(role.name for role in space.roles if one.name in role.sees)
        yield f"| {_render_cell(name)} | {len(one.entries)} | {_render_cell(roles)} |"


def _list_notes(format_: Format, chat: Chat, family: Family) -> Iterator[str]:
    groups = " or ".join(part_of(family, ReportWords).group_words)
    yield from (note.replace("{groups}", groups) for note in format_.card.notes)
    if not format_.chat:
        return
    users = _render_cell(" and the ".join(chat.users).lower())
    are = "is the user" if len(chat.users) == 1 else "are the user, each turn with its speaker's name"
    yield f"The trained side is the {_render_cell(chat.assistant.lower())} (assistant); the {users} {are}."
    opening = {
        "": "A conversation begins with its first turn, by either side; --opening adds an opening.",
        "user": "Where the trained side speaks first, an opening line by the user comes before its first "
        "turn.",
        "system": "Each conversation opens with a system message; where the trained side speaks first, its "
        "turn directly follows the system message, which some chat templates refuse.",
        "both": "Each conversation opens with a system message; where the trained side speaks first, a line "
        "by the user comes between the two.",
    }
    if chat.as_environment:
        yield "Each conversation opens with the messages that the environment shows the trained side."
    else:
        yield opening[chat.opening or ""]
    actions = chat.options.of(ActionOptions).actions
    if any(issubclass(kind, ActionOptions) for kind in format_.structs) and chat.scenes is not None:
        yield chat.scenes.note
    if actions is not None:
        whence = "its actions by its labels" if actions == "labels" else "the actions that it was asked for"
        yield (
            f"A prompt's last message ends with `{DO_THIS} …`: an instruction for the response, which names "
            f"{whence}."
        )
    end = "No message holds the end marker."
    if chat.keeps_end and format_.layout.prompts_only:
        end = "No message holds the end marker: a prompt ends before the trained side's words."
    elif chat.keeps_end:
        end = (
            "Where the trained side ended the conversation, its last message ends with `[end of "
            "conversation]`."
        )
    yield f"Consecutive turns of one side are one message, joined by a blank line. {end}"


def _list_trials(format_: Format) -> Iterator[str]:
    """Yield the trials of exports in this format, if any."""
    if not format_.card.tried:
        return
    yield from ("", "## How the format was tested", "")
    for one in format_.card.tried:
        yield f"- {one.library} {one.version}, {one.day}: {one.what}"


def _describe_facts(
    facts: Mapping[str, Any], simulated: Sequence[Part], chat: Chat, format_: Format
) -> Iterator[str]:
    shown = {key: value for key, value in facts.items() if key not in (*SETTLED, "not_begun")}
    if format_.of != "pairs" and isinstance(shown.get("job"), Mapping):
        shown["job"] = {**shown["job"], "pairs": None}
    for key, value in flatten_facts(
        select_public_facts({**shown, "simulated": " and ".join(simulated) or False})
    ):
        yield f"- {_render_cell(key)}: {_render_code(value)}"
    if format_.chat and chat.prompt is not None:
        yield f"- opening template: {_render_code(chat.prompt.name)}, sha256 {_render_code(chat.prompt.sha256)}"
    if chat.tokens is not None:
        yield from (
            f"- tokenizer: {_render_cell(key)}: {_render_code(value)}"
            for key, value in flatten_facts(chat.tokens.facts)
        )


def _describe_labels(evidence: Mapping[Evidence, int], labellers: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of labelled rows of each source, and the facts of judges and annotators."""
    rows: Counter[str] = Counter()
    for one, count in evidence.items():
        rows[str(one)] += count
    for who, count in sorted(rows.items()):
        yield f"- rows with a preference by {_render_code(who)}: {count}"
    for key, value in flatten_facts(labellers):
        yield f"- {_render_cell(key)}: {_render_code(value)}"


def _list_repeat_commands(format_: Format, facts: Mapping[str, Any], options: OptionValues) -> Iterator[str]:
    """Yield the commands that make the export again: a piece with its range, a selection with its options."""
    part, selection = facts.get("range"), facts.get("selection")
    chosen: list[str] = []
    while selection is not None and "options" in selection:
        chosen.insert(0, " ".join(selection["options"].replace("`", "'").split()))
        selection = selection.get("before")
    names = ["RUN/job.yaml", *(f"MADE{number or ''}" for number in range(len(chosen))), "AGAIN"]
    select = [f"edgen select {names[i]} {one} -o {names[i + 1]}" for i, one in enumerate(chosen, 1)]
    yield (
        "The run's folder holds its job and the texts of its templates and space. The sha256 above identify "
        "them:"
    )
    yield ""
    pairs = ["edgen pairs AGAIN --signal ..."] if format_.of == "pairs" else []
    labelled = [
        f"edgen annotate AGAIN --layer {shlex.quote(name)} ..." for name in options.of(LayerOptions).layer
    ]
    export = " ".join(["edgen export AGAIN --to", format_.name, *list_given_flags(options.given), "-o DIR"])
    generate = f"edgen generate RUN/job.yaml -o {names[1]}" + (f" --range {part}" if part else "")
    yield from ("```", generate, *select, *pairs, *labelled, export, "```", "")
    yield (
        "The scenarios, the split and the texts of a simulator are the same, byte for byte. Another model "
        "may answer differently. If conversations of RUN are pending, AGAIN has those too."
    )


def _render_code(value: Any) -> str:
    """Return a foreign value unchanged, but without effect in Markdown."""
    text = "yes" if value is True else "no" if value is False else str(value)
    return "`" + " ".join(escape_invisible(text).replace("`", "'").split()) + "`"


def _render_cell(text: str) -> str:
    """Return a foreign name as a cell of a table or a part of a line, shown literally and without effect."""
    return escape_markdown(text.replace("|", "/").replace("`", "'"))
