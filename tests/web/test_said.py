"""The pages show all data of a run: each page is compared with the run's records, labels and pairs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.web.conversation import render_conversation_page
from edgen.web.sources import Sources
from tests import ROOT
from tests.cli.command import call
from tests.web.serving import serving
from tests.web.test_pages import Site

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("forked_processes")]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder of runs with branches, pairs, alternatives, labels, events and rejected replies."""
    folder = tmp_path_factory.mktemp("said")
    made = folder / "outputs"
    for job, count in (("selfplay", 2), ("tutoring", 2), ("incident_response", 2), ("experiment", 12)):
        assert call("generate", ROOT / "jobs" / f"{job}.yaml", "-n", count, "-o", made / job) in (0, 3)
    assert call("pairs", made / "selfplay", "--signal", "oracle") == 0
    annotator = "backends.annotator={type: simulator}"
    assert call("annotate", made / "selfplay", "--labels", "teacher_moves", "--set", annotator) == 0
    stopped: tuple[object, ...] = (
        "generate",
        ROOT / "jobs" / "selfplay.yaml",
        "-n",
        20,
        "-o",
        made / "stopped",
    )
    for role in ("teacher", "student", "judge"):
        stopped = (*stopped, "--set", f"backends.{role}.max_tokens=4096")
    assert call(*stopped, "--set", "limits.max_tokens=50000") not in (0, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield made


@pytest.fixture(scope="module")
def site(outputs: Path) -> Iterator[Site]:
    with serving(outputs, folder=outputs.parent) as link:
        site = Site(int(link.partition("/enter")[0].rpartition(":")[2]), "", "", outputs)
        entered = site.get(link[link.index("/enter") :])
        yield site._replace(cookie=entered.headers["set-cookie"].split(";")[0])


def shown(outputs: Path, job: str, named: str) -> str:
    """Return the page of a conversation, with its near-duplicates."""
    ((run, _),) = Sources([outputs / job]).list_runs()
    run.wait()
    return unescape(render_conversation_page(run, named))


def records(outputs: Path, job: str) -> list[Any]:
    return list(edgen.open(outputs / job).conversations())


def test_turns_scenario_views_provenance_and_raw_replies_are_on_the_page(outputs: Path) -> None:
    for record in records(outputs, "selfplay"):
        page = shown(outputs, "selfplay", record.id)
        texts = re.findall(r'<div class="text" dir="auto">(.*?)</div>', page, re.S)
        assert texts == [turn.text for turn in record.turns]
        roles = re.findall(r'<p class="role">(\w+) <span class="count">(\d+)</span>', page)
        assert roles == [(turn.role, str(number)) for number, turn in enumerate(record.turns, 1)]
        for value in record.scenario.values.values():
            assert f"<bdi>{value}</bdi>" in page
        assert "Who knows what" in page
        for role, knows in (("Teacher", "teacher preference"), ("Student", "student preference")):
            (row,) = re.findall(rf"<dt>{role}</dt><dd>([^<]*)</dd>", page)
            assert knows in row
            assert ("student preference" in row) == (role == "Student")
        assert f"Probability {record.probability:g}." in page
        assert f"Ended by {record.ended_by}." in page
        raw = page[page.index("Raw replies") :]
        for turn in record.turns[(record.provenance or {}).get("branch") or 0 :]:  # before it: another's
            assert turn.text in raw
        assert "edgen-simulator" in page[page.index("<summary>Provenance") :]


def test_branches_and_every_verdict_are_on_the_page_of_a_scenario(outputs: Path) -> None:
    own = [record for record in records(outputs, "selfplay") if record.scenario.index == 0]
    page = shown(outputs, "selfplay", "0")
    tree = page[page.index("<h2>Branches") : page.index("Marked words")]
    left = re.findall(r"at turn (\d+): <a [^>]*>([^<]+)</a>", tree)
    assert {name for _, name in left} == {one.id for one in own if not one.id.endswith("r0")}
    assert len({turn for turn, _ in left}) >= 1
    assert "<ins>" in page
    pairs = [
        pair for pair in edgen.open(outputs / "selfplay").pairs() if pair.a.id in {one.id for one in own}
    ]
    assert pairs
    evidence = page[page.index("A star marks") :]
    for pair in pairs:
        assert f"{pair.a.id} and {pair.b.id}" in evidence
        assert pair.label is not None
        assert f"chosen {(pair.a if pair.label.chosen == 'a' else pair.b).id} by oracle" in evidence
    asked = sum(len(one.verdicts) for pair in pairs for one in pair.signals.oracle or ())
    assert len(re.findall(r"indent-4", evidence)) >= asked > 0


def test_labels_alternatives_and_events_are_on_the_page(outputs: Path) -> None:
    (first, *_) = records(outputs, "selfplay")
    lines = (outputs / "selfplay/layers/teacher_moves/labels.jsonl").read_text("utf-8").splitlines()
    labels = [json.loads(line) for line in lines]
    mine = [one for one in labels if one["id"] == first.id]
    page = shown(outputs, "selfplay", first.id)
    assert mine
    assert page.count("<span>teacher_moves: ") == len(mine)
    tutored = next(
        one for one in records(outputs, "tutoring") if any(turn.alternatives for turn in one.turns)
    )
    page = shown(outputs, "tutoring", tutored.id)
    for turn in tutored.turns:
        for other in turn.alternatives:
            assert f'<div class="text card" dir="auto">{other.text}</div>' in page
    guided = records(outputs, "incident_response")[0]
    page = shown(outputs, "incident_response", guided.id)
    names = {str(event["event"]).replace("_", " ") for event in guided.events}
    assert len(names) > 5
    chat = page[page.index('<ol class="chat"') :]
    for name in names:
        assert re.search(rf"<bdi>{name}( \(|</bdi>)", chat), name


def test_a_rejected_reply_has_its_reason_marked(outputs: Path, site: Site) -> None:
    path = site.runs()["experiment"]
    listed = site.ready(f"{path}?is=outcome:rejected").text
    (refused, *_) = re.findall(r"/run/\w+/([^\"?]+)\"", listed)
    page = unescape(site.get(f"{path}/{refused}").text)
    said = page[page.index('<p class="note">') :].partition("</p>")[0]
    (marked, *_) = re.findall(r"<mark>([^<]+)</mark>", page)
    assert len(marked) > 3
    assert marked.split()[0] in said


def test_two_conversations_side_by_side_are_marked_where_they_differ(outputs: Path, site: Site) -> None:
    slug = site.runs()["selfplay"].rpartition("/")[2]
    one, two = (record.id for record in records(outputs, "selfplay")[:2])
    site.ready(f"/run/{slug}")
    page = unescape(site.get(f"/beside?left={slug}:{one}&right={slug}&right_id={two}").text)
    left, right = page[page.index(f": selfplay, {one}") :].split(f": selfplay, {two}")
    assert "<del>" in left
    assert "<ins>" not in left
    assert "<ins>" in right
    assert "<del>" not in right
    same = site.get(f"/beside?left={slug}:{one}&right={slug}&right_id={one}").text
    assert "<ins>" not in same
    assert "<del>" not in same


def test_figures_totals_and_why_a_run_stopped_are_those_of_the_runs(outputs: Path, site: Site) -> None:
    page = site.get("/").text
    status = {name: edgen.open(outputs / name).status for name in site.runs()}
    for name, facts in status.items():
        card = page[page.index(f">{name}</a>") :].partition("</article>")[0]
        figures = dict(re.findall(r'data-of="(\w+)">([^<]*)<', card))
        assert figures["accepted"] == f"{facts.accepted:,}", name
        assert figures["calls"] == f"{facts.calls.made:,}"
        assert figures["tokens"] == f"{facts.tokens.prompt + facts.tokens.completion:,}"
        assert figures["state"] == facts.state
    whole = dict(
        re.findall(r'data-of="(\w+)">([^<]*)<', page[page.index('id="totals"') :].partition("</dl>")[0])
    )
    assert whole["calls"] == f"{sum(one.calls.made for one in status.values()):,}"
    assert whole["accepted"] == f"{sum(one.accepted for one in status.values()):,}"
    card = page[page.index(">stopped</a>") :].partition("</article>")[0]
    assert re.search(r'<p class="note">[^<]*50,?000', card), card
    assert ">Resume</button>" in card
    points = [
        float(one.split(",")[1]) for one in re.findall(r'<polyline[^>]*points="([^"]+)"', card)[0].split()
    ]
    assert len(points) == 60
    assert min(points) == 0 < max(points) == 100  # calls in the last minutes, none an hour ago


def test_an_index_is_built_in_the_background_with_its_progress_shown(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Why? " * 20}, {"role": "assistant", "content": "So it is. " * 20}]
    rows = (json.dumps({"id": f"c{number}", "messages": turns}) for number in range(10_000))
    (tmp_path / "many.jsonl").write_text("\n".join(rows), "utf-8")
    with serving(tmp_path / "many.jsonl", folder=tmp_path) as link:
        site = Site(int(link.partition("/enter")[0].rpartition(":")[2]), "", "", tmp_path)
        site = site._replace(
            cookie=site.get(link[link.index("/enter") :]).headers["set-cookie"].split(";")[0]
        )
        (path,) = re.findall(r'<h3><a href="(/run/\w+)">', site.get("/").text)
        seen: list[int] = []
        for _ in range(600):
            answer = site.get(path)
            if answer.status != 202:
                break
            assert "The index is being built" in answer.text
            assert 'http-equiv="refresh"' in answer.text
            seen.append(int(re.findall(r"built: ([\d,]+) conv", answer.text)[0].replace(",", "")))
            assert site.get("/").status == 200  # other pages answer meanwhile
            time.sleep(0.1)
        assert answer.status == 200
        assert "10,000 conversations" in answer.text
        assert seen
        assert seen == sorted(seen)
        assert seen[-1] > 0
