"""Exports of conversations of three roles about scenarios of twelve dimensions."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any, Literal

import pytest

from edgen.core.errors import ShortError, TemplateError, UsageError
from edgen.core.pair import Candidate, Label, Pair, Side, Signals
from edgen.core.values import Role, Scenario, Turn
from edgen.export.chat import make_chat
from edgen.export.conversation_rows import ScenarioColumns
from edgen.export.format import Format, FormatLayout
from edgen.export.write import export
from edgen.families.dialogue import DIALOGUE
from edgen.space import Dimension, Entry, Space, SpaceRole
from edgen.store.run_parts import AcceptedConversation, ComparedPair
from tests.export.runs import FORMATS, NO_LABELS, MemoryRun, options

TEXTS = ("setting", "mood", "text", "pace", "length", "goal", "place", "weather", "season", "language")
SPACE = Space(
    name="workshop",
    dimensions=(
        Dimension(
            "topic",
            (
                Entry("knots", fields={"grade": 4, "hard": False, "weight_kg": 1.5, "tags": ["rope"]}),
                Entry("stoves", fields={"grade": 6, "hard": True, "weight_kg": 2, "level": "beginner"}),
            ),
            "What it is about",
        ),
        Dimension("tutor_style", (Entry("brisk"), Entry("patient"))),
        *(Dimension(name, (Entry(f"{name} one"), Entry(f"{name} two"))) for name in TEXTS),
    ),
    roles=(
        SpaceRole("Tutor", ("topic", "tutor_style", "mood")),
        SpaceRole("Learner", ("topic", "goal")),
        SpaceRole("Parent", ("topic", "mood")),
    ),
)
TURNS = (
    ("Tutor", "Shall we?"), ("Learner", "Yes."), ("Parent", "Go on."), ("Tutor", "Cross it."), ("Learner", "Done."),
)  # fmt: skip
OTHER = (*TURNS[:3], ("Tutor", "Read this first."), ("Learner", "Why?"))


def scenario(index: int) -> Scenario:
    values = {one.name: one.entries[index % 2].value for one in SPACE.dimensions}
    return Scenario(index, values, {"topic": SPACE["topic"].entries[index % 2].fields})


def candidate(index: int, number: int, said: tuple[tuple[Role, str], ...]) -> Candidate:
    turns = tuple(Turn(role, text) for role, text in said)
    return Candidate(
        id=f"w-{index:06d}-r{number}",
        scenario=index,
        replicate=number,
        turns=turns,
        simulated=True,
    )


def accepted(index: int, number: int, said: tuple[tuple[Role, str], ...]) -> AcceptedConversation:
    one = candidate(index, number, said)
    record = {
        "id": one.id,
        "scenario": scenario(index).values,
        "roles": ["Tutor", "Learner", "Parent"],
        "conversation": [{"role": role, "text": text} for role, text in said],
    }
    side: Literal["train", "test"] = "test" if index == 3 else "train"
    return AcceptedConversation(one, scenario(index), side, record, one.turns, {"model": "m"})


def compared(index: int) -> ComparedPair:
    a, b = candidate(index, 0, TURNS), candidate(index, 1, OTHER)
    pair = Pair(
        id=f"w-{index:06d}-r0-r1",
        scenario=index,
        split="test" if index == 3 else "train",
        origin="replicates",
        a=Side(id=a.id, replicate=0),
        b=Side(id=b.id, replicate=1),
        prefix_turns=3,
        differs_at="Tutor",
        texts="0" * 16,
        signals=Signals(probability=NO_LABELS),
        label=Label(by="human", chosen="a", p=1.0, margin=1.0),
        left_out=None,
        provenance={"run": "w", "simulated": True},
    )
    return ComparedPair(pair, a, b, scenario(index))


RUN = MemoryRun(
    taught=[accepted(i, n, said) for i in range(4) for n, said in enumerate((TURNS, OTHER))],
    pairs=[compared(i) for i in range(4)],
    name="w",
    space=SPACE,
    family=DIALOGUE,
)
COLUMNS = [
    "topic", "tutor_style", "setting", "mood", "scenario.text", "pace", "length", "goal", "place", "weather",
    "season", "language", "topic.grade", "topic.hard", "topic.weight_kg", "topic.tags", "level",
]  # fmt: skip


def test_a_column_for_each_dimension_and_field_with_its_type() -> None:
    columns = ScenarioColumns(SPACE)
    assert list(columns.columns) == COLUMNS
    types = {name: type_ for name, (type_, _) in columns.columns.items() if name.startswith("topic.")}
    assert types == {
        "topic.grade": "int64",
        "topic.hard": "bool",
        "topic.weight_kg": "float64",
        "topic.tags": "string",
    }
    row = columns.read(scenario(0))
    assert (row["topic.grade"], row["topic.hard"], row["topic.tags"], row["level"]) == (
        4,
        False,
        '["rope"]',
        None,
    )
    assert row["scenario.text"] == "text one"
    assert columns.read(scenario(1))["topic.tags"] is None


def load(format_: Format, folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all files, as a reader of the format finds them."""
    import pyarrow.parquet

    rows: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*.*")):
        if path.suffix == ".jsonl":
            rows += [json.loads(line) for line in path.read_text().splitlines()]
        elif path.suffix == ".csv":
            with path.open(newline="") as file:
                rows += csv.DictReader(file)
        elif path.suffix == ".parquet":
            rows += pyarrow.parquet.read_table(path).to_pylist()
        elif path.name in ("train.json", "test.json") and isinstance(
            found := json.loads(path.read_text()), dict
        ):
            rows += found.values()
    assert (folder / "README.md").read_text().count("| tutor_style | 2 | Tutor |") == 1, format_.name
    return rows


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_holds_three_roles_or_says_why_not(name: str, tmp_path: Path) -> None:
    format_ = FORMATS[name]
    if format_.family is not None:
        with pytest.raises(UsageError) as caught:
            export(RUN, format_, tmp_path / "out")
        assert f"of the family {format_.family}, and these are of the family dialogue" in str(caught.value)
        assert "roles Tutor, Learner, Parent" in str(caught.value)
        assert list(tmp_path.iterdir()) == []
        return
    if {"labels", "events"} & {*format_.needs} or "text-ranking" in format_.card.tasks:
        with pytest.raises(
            ShortError,
            match=r"nothing of the run can be exported as .*\. Left out: (no_|same_context)|more are needed",
        ):
            export(RUN, format_, tmp_path / "out")
        assert list(tmp_path.iterdir()) == []
        return
    opening = format_.read({"opening": "user"}) if format_.chat else None
    exported = export(RUN, format_, tmp_path / "out", opening)
    assert sum(exported.rows[next(iter(exported.rows))].values()) > 0
    rows = load(format_, tmp_path / "out")
    assert rows
    said = json.dumps(rows)
    if format_.chat:
        assert "Learner: Yes.\\n\\nParent: Go on." in said
        assert "Tutor: " not in said
    if name in ("hf", "csv"):
        assert {*COLUMNS} <= rows[0].keys()


FOR_TRAINERS = (
    "llamafactory",
    "trl-dpo",
    "trl-conversation",
    "trl-kto",
    "trl-sft",
    "trl-prompts",
    "openrlhf",
    "sharegpt",
    "verl",
)


@pytest.mark.parametrize("name", FOR_TRAINERS)
def test_what_trainers_take_has_the_scenario_beside_their_own_columns(name: str, tmp_path: Path) -> None:
    export(RUN, FORMATS[name], tmp_path / "out")
    for row in load(FORMATS[name], tmp_path / "out"):
        knots = row["topic"] == "knots"
        assert row["tutor_style"] == ("brisk" if knots else "patient")
        assert row["topic.grade"] == ("4" if knots else "6")
        assert row["topic.hard"] == ("false" if knots else "true")
        # Empty and not null: a column that is null in one file and text in another cannot be loaded.
        assert (row["topic.tags"], row["level"]) == (('["rope"]', "") if knots else ("", "beginner"))
        assert row["scenario.text"] == ("text one" if knots else "text two")  # `text` is a trainer's own
        assert row["scenario.length"] == ("length one" if knots else "length two")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "- `tutor_style`: the scenario's tutor style" in card
    assert "- `scenario.text`: the scenario's text" in card


@pytest.mark.parametrize("name", FOR_TRAINERS)
def test_no_dimension_takes_the_name_of_a_trainers_column(name: str) -> None:
    """Dimensions named like columns, or like arguments of TRL's reward functions, get other names."""
    own = {column for one in FOR_TRAINERS for columns in plain(one).values() for column in columns}
    handed = "prompts completions completion_ids trainer_state log_extra log_metric environments"
    read = "image images tools chat_template_kwargs margin text input_ids labels messages"
    wanted = sorted({*own, *handed.split(), *read.split()})
    space = Space(
        name="clash",
        dimensions=tuple(Dimension(column, (Entry("one"), Entry("two"))) for column in wanted),
        roles=(SpaceRole("Tutor", ()), SpaceRole("Learner", ())),
    )
    for table in FORMATS[name].tables_of(space):
        beside = set(table.columns) - set(plain(name)[table.name])
        assert beside == {f"scenario.{column}" for column in wanted}


def plain(name: str) -> dict[str, list[str]]:
    """Return a format's own columns by table."""
    tables = dataclasses.replace(FORMATS[name], layout=FormatLayout()).tables_of(SPACE)
    return {table.name: list(table.columns) for table in tables}


def test_a_corpus_has_three_speakers_of_each_conversation(tmp_path: Path) -> None:
    export(RUN, FORMATS["convokit"], tmp_path / "out")
    speakers = json.loads((tmp_path / "out" / "speakers.json").read_text())
    assert speakers["w-000000-r0-Tutor"]["meta"] == {"role": "Tutor", "style": "brisk", "mood": "mood one"}
    assert speakers["w-000000-r0-Parent"]["meta"] == {"role": "Parent", "mood": "mood one"}
    conversations = json.loads((tmp_path / "out" / "conversations.json").read_text())
    meta = conversations["w-000000-r0"]["meta"]
    assert (meta["topic"], meta["topic.grade"], meta["weather"]) == ("knots", 4, "weather one")
    assert not {"goal", "mood", "tutor_style"} & meta.keys()
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    assert index["speakers-index"].keys() == {"role", "style", "mood", "goal"}
    assert index["conversations-index"].keys() == meta.keys()


class TestTheAssistant:
    def test_is_the_first_role_where_nobody_chose(self) -> None:
        assert make_chat(options("trl-sft"), SPACE).assistant == "Tutor"

    def test_may_be_any_role_and_is_told_what_only_that_role_knows(self) -> None:
        chat = make_chat(options("trl-sft", train="LEARNER", opening="both"), SPACE)
        system, opening, first = chat.messages((Turn("Learner", "Hi."), Turn("Tutor", "Yes?")), scenario(0))[
            :3
        ]
        assert system["content"] == (
            "You are the learner in a conversation with the tutor and the parent.\n\nWhat you know:\n"
            "- What it is about: knots\n- goal: goal one"
        )
        assert (opening["role"], first) == ("user", {"role": "assistant", "content": "Hi."})

    def test_is_a_role_of_the_space(self) -> None:
        with pytest.raises(UsageError, match="no such role \\(known: tutor, learner, parent\\)"):
            make_chat(options("trl-sft", train="teacher"), SPACE)

    def test_a_template_of_ones_own_may_use_what_the_space_has(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.j2"
        path.write_text("{% block user %}{{ others }}: {{ topic }} {{ topic.grade }}{% endblock %}")
        chat = make_chat(options("trl-sft", opening_prompt=path), SPACE)
        assert (
            chat.messages((Turn("Tutor", "Hi."),), scenario(1))[0]["content"]
            == "learner and the parent: stoves 6"
        )
        path.write_text("{% block user %}{{ teacher_preference }}{% endblock %}")
        with pytest.raises(TemplateError, match="teacher_preference"):
            make_chat(options("trl-sft", opening_prompt=path), SPACE)
