"""Properties of the rows of any conversations."""

from __future__ import annotations

import csv
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.values import END_MARKER, ROLES, Role, Turn
from edgen.export.chat import Chat
from edgen.export.formats.openrlhf import join_messages
from edgen.export.formats.shared.completions import OF_COMPLETIONS
from edgen.export.rows import LeftOut, Row
from edgen.export.shared_options import Opening
from edgen.export.write import export
from tests.export.runs import FORMATS, MemoryRun, chat, compared, lesson

pytestmark = pytest.mark.integration

CHATS: dict[tuple[Role, Opening], Chat] = {
    (train, opening): chat(train, opening) for train in ROLES for opening in get_args(Opening)
}
# Few words, so that conversations share beginnings and completions come twice.
words = st.sampled_from(["a", "b", "a\n\nb", "é 🙂", "Assistant: ", "{{ topic }}", "</s>"])
turn = st.builds(Turn, st.sampled_from(ROLES), words)
said = st.lists(turn, min_size=2, max_size=7).map(tuple).filter(lambda s: len({t.role for t in s}) == 2)
chats = st.sampled_from(sorted(CHATS))


@st.composite
def runs(draw: st.DrawFn) -> MemoryRun:
    """Draw scenarios with two or three conversations that share a beginning, and pairs of them."""
    lessons, pairs = [], []
    for index in range(draw(st.integers(1, 3))):
        split = draw(st.sampled_from(["train", "test"]))
        shared = draw(st.lists(turn, max_size=4).map(tuple))
        tails = draw(st.lists(said, min_size=2, max_size=3))
        talks = [shared + tail for tail in tails]
        lessons += [lesson(index, number, talk, split) for number, talk in enumerate(talks)]
        strong = draw(st.none() | st.lists(st.floats(-3, 3), min_size=len(talks), max_size=len(talks)))
        for a, b in itertools.combinations(range(len(talks)), 2):
            chosen = draw(st.sampled_from(["a", "b", None]))
            pairs.append(
                compared(
                    index,
                    talks[a],
                    talks[b],
                    chosen=chosen,
                    left_out=None if chosen else draw(st.sampled_from(["tie", "abstained", "contradicted"])),
                    p=draw(st.sampled_from([0.6, 1.0])),
                    split=split,
                    numbers=(a, b),
                    strengths=None if strong is None else (strong[a], strong[b]),
                )
            )
    return MemoryRun(lessons, pairs)


def _items(name: str, run: MemoryRun, speaker: Chat) -> list[Row | LeftOut]:
    return list(FORMATS[name].rows(run, speaker))


def _rows(name: str, run: MemoryRun, speaker: Chat, config: str = "default") -> list[dict[str, Any]]:
    return [
        item.value for item in _items(name, run, speaker) if isinstance(item, Row) and item.table == config
    ]


def _alternates(messages: list[dict[str, Any]]) -> bool:
    """Return whether a system message comes first if at all, then user and assistant in turn, none empty."""
    body = messages[1:] if messages[0]["role"] == "system" else messages
    return all(
        one["role"] != two["role"] and {one["role"], two["role"]} == {"user", "assistant"}
        for one, two in itertools.pairwise(body)
    ) and all(message["content"] for message in messages)


def _decoded(messages: list[dict[str, Any]], train: Role) -> list[tuple[str, str]]:
    """Return messages as (role, words), without the opening."""
    other: Role = "Student" if train == "Teacher" else "Teacher"
    names = {"assistant": train, "user": other}
    body = messages[1:] if messages[0]["role"] == "system" else messages
    return [(names[m["role"]], m["content"]) for m in body]


def _merged(turns: tuple[Turn, ...]) -> list[tuple[str, str]]:
    return [
        (role, "\n\n".join(t.text for t in group))
        for role, group in itertools.groupby(turns, key=lambda t: t.role)
    ]


@settings(max_examples=25, deadline=None)
@given(said, chats)
def test_messages_alternate_and_give_the_turns_back(
    turns: tuple[Turn, ...], how: tuple[Role, Opening]
) -> None:
    train, opening = how
    messages = CHATS[how].messages(turns, lesson(0, 0, turns).scenario)
    assert _alternates(messages)
    assert (messages[0]["role"] == "system") == (opening != "user")
    back = _decoded(messages, train)
    if opening != "system" and turns[0].role == train:
        back = back[1:]  # the opening line
    if opening != "system":
        first = messages[1] if opening == "both" else messages[0]
        assert first["role"] == "user"
    assert back == _merged(turns)


@settings(max_examples=25, deadline=None)
@given(runs(), chats)
def test_every_conversation_and_every_pair_is_a_row_or_is_counted(
    run: MemoryRun, how: tuple[Role, Opening]
) -> None:
    speaker = CHATS[how]
    assert run.pairs is not None
    for name in ("trl-sft", "verl", "sharegpt", "hf", "convokit", "ed"):
        assert len(_items(name, run, speaker)) == len(run.taught), name
    for name in ("trl-dpo", "trl-conversation", "refuel", "mtpo"):
        assert len(_items(name, run, speaker)) == len(run.pairs), name


@settings(max_examples=25, deadline=None)
@given(runs(), chats)
def test_turn_level_rows(run: MemoryRun, how: tuple[Role, Opening]) -> None:
    speaker = CHATS[how]
    whole = {c.pair.id: c for c in run.pairs or ()}
    rows = _rows("trl-dpo", run, speaker)
    for row in rows:
        source = whole[row["id"]]
        assert source.pair.label is not None
        sides = {"a": source.a, "b": source.b}
        better = sides.pop(source.pair.label.chosen)
        (worse,) = sides.values()
        for side, name in ((better, "chosen"), (worse, "rejected")):
            messages = speaker.messages(side.turns, source.scenario)
            assert messages[: len(row["prompt"]) + 1] == row["prompt"] + row[name]
            assert [m["role"] for m in row[name]] == ["assistant"]
        assert row["prompt"]
        assert row["prompt"][-1]["role"] != "assistant"
        assert row["chosen"][0]["content"].strip() != row["rejected"][0]["content"].strip()

    pairs = _rows("openrlhf", run, speaker, "pairs")
    assert [(p["chosen"], p["rejected"]) for p in pairs] == [
        (row["prompt"] + row["chosen"], row["prompt"] + row["rejected"]) for row in rows
    ]
    for row in _rows("refuel", run, speaker):
        at = 2 * row["h"] + 1
        assert row["chosen"][:at] == row["reject"][:at]
        assert row["chosen"][at] != row["reject"][at]
        assert row["chosen_reward"] > row["reject_reward"]
        for messages in (row["chosen"], row["reject"]):
            assert len(messages) % 2 == 0
            assert messages[0]["role"] == "user"
            assert _alternates(messages)


@settings(max_examples=25, deadline=None)
@given(runs(), chats)
def test_no_completion_is_both_good_and_bad_or_there_twice(run: MemoryRun, how: tuple[Role, Opening]) -> None:
    speaker = CHATS[how]
    labels: dict[str, set[bool]] = {}
    rows = _rows("trl-kto", run, speaker)
    for row in rows:
        labels.setdefault(repr((row["prompt"], row["completion"])), set()).add(row["label"])
    assert len(labels) == len(rows)
    assert all(len(found) == 1 for found in labels.values())
    scored = _rows("openrlhf", run, speaker, "scored")
    assert [(s["in_text"], s["out_text"], s["score"] == 1) for s in scored] == [
        (join_messages(row["prompt"]), row["completion"][0]["content"], row["label"]) for row in rows
    ]
    # each half of each pair is a row or counted
    pairs = [
        item
        for item in _items("trl-dpo", run, speaker)
        if not isinstance(item, LeftOut) or item.reason in ("contradictory", "repeated")
    ]
    dropped = [i for i in _items("trl-kto", run, speaker) if isinstance(i, LeftOut)]
    of_halves = sum(item.reason in OF_COMPLETIONS for item in dropped)
    assert len(rows) + of_halves == 2 * len(pairs)


@settings(max_examples=25, deadline=None)
@given(runs(), chats)
def test_whole_conversations(run: MemoryRun, how: tuple[Role, Opening]) -> None:
    speaker = CHATS[how]
    for row in _rows("trl-conversation", run, speaker):
        assert row["chosen"] != row["rejected"]
        assert _alternates(row["chosen"])
        assert _alternates(row["rejected"])
        assert 0.5 < row["p"] <= 1
    taught = {source.candidate.id: source for source in run.taught}
    distinct: set[str] = set()
    for row in _rows("trl-sft", run, speaker):
        bare = [{"role": m["role"], "content": m["content"]} for m in row["messages"]]
        source = taught[row["id"]]
        assert bare == speaker.messages(source.candidate.turns, source.scenario)
        assert all(m["train"] == (m["role"] == "assistant") for m in row["messages"])
        distinct.add(f"{source.scenario.index} {bare}")
    # every conversation is present, and no scenario has two
    assert len(distinct) == len(_rows("trl-sft", run, speaker))
    assert distinct == {
        f"{s.scenario.index} {speaker.messages(s.candidate.turns, s.scenario)}" for s in run.taught
    }
    for row in _rows("mtpo", run, speaker):
        assert row["first"] != row["second"]
        assert 0 <= row["p"] <= 1
    for row in _rows("sharegpt", run, speaker):
        names = [m["from"] for m in row["conversations"] if m["from"] != "system"]
        assert names == ["human", "gpt"] * (len(names) // 2)


@settings(max_examples=25, deadline=None)
@given(runs(), chats)
def test_prompts_lead_up_to_every_turn_of_the_trained_side(run: MemoryRun, how: tuple[Role, Opening]) -> None:
    speaker = CHATS[how]
    rows = _rows("trl-prompts", run, speaker)
    given_prompts = {repr(row["prompt"]) for row in rows}
    for source in run.taught:
        messages = speaker.messages(source.candidate.turns, source.scenario)
        for i, message in enumerate(messages):
            assert (repr(messages[:i]) in given_prompts) >= (message["role"] == "assistant")
    assert all(row["prompt"][-1]["role"] != "assistant" for row in rows)


anything = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
any_turn = st.builds(Turn, st.sampled_from(ROLES), anything)
any_talk = st.lists(any_turn, min_size=1, max_size=4).map(tuple)


# Many conversations per example: most of the time goes to the sync of each file.
@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.tuples(any_talk, st.sampled_from(["train", "test"])), min_size=1, max_size=12),
    st.sampled_from(["parquet", "jsonl"]),
)
def test_what_is_written_as_a_data_set_is_read_back_to_the_letter(
    talks: list[tuple[tuple[Turn, ...], str]], storage: str
) -> None:
    """Every format of whole conversations returns the same texts when its files are read."""
    run = MemoryRun([lesson(index, 0, talk, split) for index, (talk, split) in enumerate(talks)])
    said = {one.candidate.id: (one.split, one.candidate.turns) for one in run.taught}
    with tempfile.TemporaryDirectory() as folder:
        for name in _READERS:
            target = Path(folder) / name
            options = {"hf": {"files": storage}, "csv": {"csv_safe": False}}.get(name, {})
            export(run, FORMATS[name], target, FORMATS[name].read(options))
            assert _READERS[name](target) == said, name


Said = dict[str, tuple[str, tuple[Turn, ...]]]


def _hub(folder: Path) -> Said:
    import pyarrow.parquet

    found: Said = {}
    for path in sorted((folder / "data").iterdir()):
        if path.suffix == ".parquet":
            rows = pyarrow.parquet.read_table(path).to_pylist()
        else:
            rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        for row in rows:
            *before, last = (Turn(turn["role"], turn["text"]) for turn in row["conversation"])
            spoken = Turn(last.role, last.text.removesuffix(f" {END_MARKER}"))
            found[row["id"]] = (path.name.split("-")[0], (*before, spoken))
    return found


def _table(folder: Path) -> Said:
    found: Said = {}
    for path in folder.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                split, turns = found.get(row["id"], (path.stem, ()))
                assert (split, len(turns)) == (row["split"], int(row["turn"]))
                found[row["id"]] = (split, (*turns, Turn(row["role"], row["text"])))  # type: ignore[arg-type]
    return found


def _corpus(folder: Path) -> Said:
    about = json.loads((folder / "conversations.json").read_bytes())
    found: Said = {name: (one["meta"]["split"], ()) for name, one in about.items()}
    for line in (folder / "utterances.jsonl").read_bytes().splitlines():
        one = json.loads(line)
        split, turns = found[one["conversation_id"]]
        found[one["conversation_id"]] = (split, (*turns, Turn(one["meta"]["role"], one["text"])))
    return found


_READERS = {"hf": _hub, "csv": _table, "convokit": _corpus}
