"""The parts of the reading pages.

Marks, requests as they were sent, others' data, static sites, and damaged or hostile input.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pyarrow  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

import edgen
from edgen.core.errors import EdgenError, RunError, UsageError
from edgen.core.values import Request
from edgen.families.record_files import open_records
from edgen.store.conversation_index import ConversationIndex, IndexEntry, Query
from edgen.store.conversation_index.writer import Indexed, write_index
from edgen.web.browse import read_query, render_address
from edgen.web.conversation import render_conversation_page
from edgen.web.marked_texts import mark_reply, mark_text_differences
from edgen.web.sent_requests import read_sent_requests
from edgen.web.sources import IndexedRun, Sources
from edgen.web.static_site import export_site
from tests import ROOT, fork_server
from tests.cli.command import call

pytestmark = pytest.mark.usefixtures("forked_processes")

HOSTILE = "<script>alert(1)</script>\u202egnp.exe\x1b[31m&amp;"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.unit
def test_parts_of_a_reply_are_what_was_read_and_why_it_was_rejected() -> None:
    raw = 'Teacher: "Hello  there"\nStudent: "I cannot help with that."'
    parts = mark_reply(raw, ["Hello  there"], None, None)
    assert [(one.text, one.turn) for one in parts if one.kind == "read"] == [("Hello  there", 1)]
    parts = mark_reply(raw, [], "refused", "the model declined: I cannot help with…")
    assert [one.text for one in parts if one.kind == "reason"] == ["I cannot help with"]
    parts = mark_reply("a " * 100, [], "truncated", "the answer was cut off by the token limit")
    assert [one.kind for one in parts] == ["plain", "reason", "plain"]
    escaped = json.dumps({"turns": ['Say "so"\nnow']})
    assert [one.turn for one in mark_reply(escaped, ['Say "so"\nnow'], None, None) if one.turn] == [1]
    for text in ("", "x" * 1_000_000, "(((([[[", HOSTILE):
        parts = mark_reply(text, [text], "loop", f"it says: {text[:50]}…")
        assert "".join(one.text for one in parts) == text


@pytest.mark.unit
def test_differences_are_words_and_nothing_is_lost() -> None:
    parts = mark_text_differences("the big red house", "the red house", "added")
    assert [(one.text.strip(), one.kind) for one in parts if one.kind != "plain"] == [("big", "added")]
    for text, other in (("", "x"), ("x", ""), ("same", "same"), ("y " * 2_000, "z"), (HOSTILE, "gnp exe")):
        assert "".join(one.text for one in mark_text_differences(text, other, "added")) == text


@pytest.mark.unit
def test_an_address_and_its_query_say_the_same() -> None:
    query = Query(
        words='two "of these"',
        facets={"a:b": ("x", "y:z"), "c&d": ("=é",)},
        ranges={"words": (1.5, None), "m.x": (None, 3)},
        order="-words",
    )
    for page in (0, 7):
        pairs = parse_qsl(render_address(query, page)[1:])
        found, at = read_query(pairs)
        assert (found, at) == (query, page)


@pytest.mark.unit
def test_near_duplicates_and_phrases_are_found(tmp_path: Path) -> None:
    base = [f"word{n}" for n in range(60)]
    texts = {f"own-{n}": " ".join(f"other{n}x{place}" for place in range(60)) for n in range(200)}
    texts |= {"one": " ".join(base), "two": " ".join([*base[:30], "changed", *base[31:]])}
    entries = [
        Indexed(entry=IndexEntry(id=name, title="t", preview="", status=""), text=text, said=text)
        for name, text in texts.items()
    ]
    for _ in write_index(tmp_path / "index.db", entries):
        pass
    index = ConversationIndex(tmp_path / "index.db")
    assert [one.id for one in index.find_similar("one")] == ["two"]
    assert index.find_similar("own-3") == []
    assert {one.id for one in index.find(Query(words="word2 word1"), 0, 9).entries} == {"one", "two"}
    assert [one.id for one in index.find(Query(words='"word29 word30"'), 0, 9).entries] == ["one"]
    assert index.find(Query(words='"word30 word29"'), 0, 9).total == 0


@pytest.mark.integration
@pytest.mark.parametrize("name", ["quickstart", "selfplay", "tutoring"])
def test_requests_are_shown_as_they_were_sent(name: str, tmp_path: Path) -> None:
    assert call("generate", ROOT / "jobs" / f"{name}.yaml", "-n", "2", "-o", tmp_path / name) in (0, 3)
    with sqlite3.connect(tmp_path / name / "run.db") as book:
        rows = book.execute("SELECT scenario, task, step, attempt, text FROM replies").fetchall()
    assert rows
    found, note = read_sent_requests(tmp_path / name, "", 0, 0)
    assert note is None
    stored = {
        (step, attempt): text for scenario, task, step, attempt, text in rows if (scenario, task) == (0, 0)
    }
    assert {(one.step, one.attempt): one.reply and one.reply.text for one in found} == stored
    assert all(one.messages and one.messages[-1].content for one in found)


@pytest.mark.integration
def test_requests_equal_those_that_a_backend_got(tmp_path: Path) -> None:
    got: list[Request] = []

    async def answer(request: Request) -> str:
        got.append(request)
        return (
            "I cannot help with that."
            if request.address.attempt == 0
            else '[Teacher: "Hello.",\nStudent: "Goodbye [end of conversation]"]\nProbability: 0.5'
        )

    job = {
        "name": "own",
        "conversations": 2,
        "space": "education_dialogue",
        "prompt": "education_dialogue",
        "asks": 3,
    }
    edgen.generate(job, backends={"default": answer}, output=tmp_path / "own", progress=False)
    for scenario in (0, 1):
        found, note = read_sent_requests(tmp_path / "own", "", scenario, 0)
        mine = sorted(
            (one for one in got if one.address.scenario == scenario), key=lambda one: one.address.attempt
        )
        assert note is None
        assert [(one.attempt, one.messages, one.seed) for one in found] == [
            (one.address.attempt, one.messages, one.seed) for one in mine
        ]


CHATS: dict[str, dict[str, Any]] = {
    "messages": {
        "id": "one",
        "source": "forum",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Why is the sky blue?"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"name": "look"}]},
            {"role": "tool", "content": "scattering"},
            {"role": "assistant", "content": "Scattering."},
        ],
    },
    "sharegpt": {
        "id": 7,
        "conversations": [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}],
    },
}


@pytest.mark.integration
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
@pytest.mark.parametrize("layout", [*CHATS])
def test_chats_open_in_the_same_pages_and_are_measured(
    layout: str, suffix: str, tmp_path: Path, cache: Path
) -> None:
    rows = [CHATS[layout], {**CHATS[layout], "id": "two" if layout == "messages" else 8}]
    file = tmp_path / f"chats{suffix}"
    if suffix == ".json":
        file.write_text(json.dumps(rows), "utf-8")
    elif suffix == ".jsonl":
        file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    else:
        rows = [
            json.loads(
                json.dumps(row).replace(
                    '[{"type": "text", "text": "Why is the sky blue?"}]', '"Why is the sky blue?"'
                )
            )
            for row in rows
        ]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    reader = open_records(file).reader
    assert reader is not None
    assert reader.name == "chat"
    (data,) = Sources([file]).data
    index = data.wait()
    assert cache.exists()
    assert index is not None, data.problem
    assert index.size == 2
    identifier = next(iter(index.iterate_ids()))
    page = unescape(render_conversation_page(data, identifier))
    assert "Assistant" in page
    if layout == "messages":
        assert "Be brief." in page
        assert index.find(Query(facets={"source": ("forum",)}, words="scattering"), 0, 9).total == 2
    assert call("stats", file) == 0


@pytest.mark.unit
def test_unreadable_paths_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text('[{"a": 1}]', "utf-8")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "empty.jsonl").write_text("", "utf-8")
    for name in ("odd.json", "broken.parquet", "empty.jsonl", "missing"):
        with pytest.raises((EdgenError,), match=name.partition(".")[0]):
            Sources([tmp_path / name])


@pytest.mark.integration
def test_a_static_site_has_every_page_that_it_links_to(tmp_path: Path, cache: Path) -> None:
    assert call("generate", ROOT / "jobs" / "experiment.yaml", "-n", "10", "-o", tmp_path / "experiment") in (
        0,
        3,
    )
    site = export_site([tmp_path / "experiment"], tmp_path / "site")
    assert cache.exists()
    assert site.conversations == 30
    assert site.size * 1000 / site.conversations < 20e6
    names = {file.name for file in (tmp_path / "site").iterdir()}
    reached, queue = set[str](), ["index.html"]
    while queue:
        name = queue.pop()
        if name in reached:
            continue
        reached.add(name)
        text = (tmp_path / "site" / name).read_text("utf-8")
        assert "<script" not in text
        for link in re.findall(r'(?:href|src|action)="([^"]*)"', text):
            target = unquote(unescape(link).partition("#")[0]).removeprefix("./")
            if target and not target.startswith("data:"):
                assert target in names, (name, link)
                queue += [target] if target.endswith(".html") else []
    assert {name for name in names if name.endswith(".html")} == reached
    again = export_site([tmp_path / "experiment"], tmp_path / "site")
    assert again.size == site.size
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note.txt").write_text("keep", "utf-8")
    with pytest.raises(UsageError, match="not an earlier export"):
        export_site([tmp_path / "experiment"], tmp_path / "mine")
    assert call("web", tmp_path / "experiment", "--export", tmp_path / "site2") == 0
    assert (tmp_path / "site2" / "index.html").exists()


@pytest.mark.integration
def test_hostile_texts_of_any_field_are_text(tmp_path: Path, cache: Path) -> None:
    long = "w" * 1_000_000
    row = {
        "id": f"../{HOSTILE}",
        f"key {HOSTILE}": HOSTILE,
        "messages": [
            {"role": HOSTILE, "content": HOSTILE},
            {"role": "assistant", "content": f"{long} {HOSTILE}"},
        ],
    }
    (tmp_path / "hostile.jsonl").write_text(json.dumps(row), "utf-8")
    site = export_site([tmp_path / "hostile.jsonl"], tmp_path / "site")
    assert cache.exists()
    assert site.conversations == 1
    for file in (tmp_path / "site").glob("*.html"):
        text = file.read_text("utf-8")
        assert "<script>" not in text
        assert not {"\u202e", "\x1b"} & set(text)
    assert not (tmp_path / "site").parent.joinpath("gnp.exe").exists()


@pytest.mark.integration
def test_a_run_that_changes_while_it_is_shown(tmp_path: Path, cache: Path) -> None:
    place = tmp_path / "outputs" / "grows"
    job = ROOT / "jobs" / "quickstart.yaml"
    command = ["generate", str(job), "-n", "1000", "-o", str(place)]
    assert cache
    with fork_server.Popen(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not (place / "run.db").exists() and process.poll() is None:
            time.sleep(0.05)
        sources = Sources([tmp_path / "outputs"])
        while process.poll() is None:  # being written
            for run, _ in sources.list_runs():
                index = run.wait()
                if index is not None:
                    index.find(Query(order="-words"), 0, 50)
        assert process.returncode == 0
    ((run, facts),) = sources.list_runs()
    assert facts.problem is None
    assert render_conversation_page(run, "0")
    with sqlite3.connect(place / "run.db") as book:  # a ledger of another version
        book.execute("PRAGMA user_version = 99")
    with pytest.raises(RunError, match=r"run\.db"):
        render_conversation_page(IndexedRun(place), "0")
    other = IndexedRun(place)
    assert other.wait() is None
    assert other.problem
    assert "Traceback" not in other.problem
    shutil.move(place, tmp_path / "outputs" / "moved")
    assert [one.name for one, _ in sources.list_runs()] == ["moved"]
    with pytest.raises(EdgenError):
        render_conversation_page(run, "0")


@pytest.mark.integration
def test_requests_right_after_a_start_all_find_the_run(tmp_path: Path) -> None:
    run = tmp_path / "outputs" / "run"
    assert call("generate", ROOT / "jobs" / "quickstart.yaml", "-n", 2, "-o", run) in (0, 3)
    slug = Sources([tmp_path / "outputs"]).list_runs()[0][0].slug
    for _ in range(5):
        sources = Sources([tmp_path / "outputs"])
        with ThreadPoolExecutor(8) as pool:
            assert None not in [*pool.map(sources.find, [slug] * 8)]
