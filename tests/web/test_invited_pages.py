"""Pages of invited people in a real browser: keyboard, phone, parallel, reloaded, offline, accessible."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet  # type: ignore[import-untyped]
import pytest
from playwright.sync_api import Browser, Page

from edgen.store.people import People
from edgen.store.people.mailbox import Mailbox
from tests import ROOT, fork_server
from tests.web.serving import LOOKS, RULES, browsing, open_ready, start_pages, violations

pytestmark = pytest.mark.integration

PHONE = {"width": 360, "height": 740}
PLAY = ("conversations=1", "replicates=1", "branch=null", "selfplay.closing=null")


class Site(NamedTuple):
    base: str
    run: Path
    links: dict[str, str]


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve a run of pairs with people who vote and label, which two people also play; yield its pages."""
    folder = tmp_path_factory.mktemp("faces")
    run = folder / "rated"
    made = fork_server.finish("generate", "jobs/rated_pairs.yaml", "-n", "3", "-o", run, cwd=ROOT)
    assert made.returncode in (0, 3), made.stderr
    invite = "from edgen.web.people.inviting import set_up; from edgen.web.options import PeopleOptions as P; import json, pathlib, sys\n"
    invite += "runs = [pathlib.Path(sys.argv[1])]; keys = set_up(runs, P(vote=True, invite='vera'))\n"
    invite += "print(json.dumps(keys | set_up(runs, P(label='teacher_moves', invite='lea'))))"
    told = fork_server.finish(run, code=invite)
    with _pages(run, folder) as (server, owner):
        base = owner.partition("/enter")[0]
        keys = json.loads(told.stdout)
        yield Site(base, run, {name: f"{base}/enter?key={key}" for name, key in keys.items()})
        assert server.poll() is None


class _pages:  # noqa: N801 - a context manager
    """A server of one run's pages; it ends with the block in any case."""

    def __init__(self, run: Path, folder: Path) -> None:
        self.server, self.told = start_pages(run, folder=folder)

    def __enter__(self) -> tuple[fork_server.Popen, str]:
        return self.server, str(self.told["url"])

    def __exit__(self, *_: object) -> None:
        self.server.send_signal(signal.SIGINT)
        try:
            self.server.wait(180)
        finally:
            self.server.kill()
            if self.server.stdout is not None:
                self.server.stdout.close()


def _enter(chrome: Browser, link: str, **options: object) -> Page:
    page = chrome.new_context(bypass_csp=True, **options).new_page()  # type: ignore[arg-type]
    page.goto(link)
    return page


def _is_right(page: Page) -> None:
    """Check the page in light, dark and on a phone: no violation, and no content outside the screen."""
    looks = (("light", {"width": 1280, "height": 860}, RULES), ("dark", PHONE, LOOKS))
    for scheme, size, rules in looks:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size(size)  # type: ignore[arg-type]
        assert violations(page, rules) == [], page.url
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, page.url


def test_votes_by_keyboard_alone_stay_after_reload_back_and_a_lost_connection(
    chrome: Browser, site: Site
) -> None:
    page = _enter(chrome, site.links["vera"])
    page.wait_for_selector("form.answers")
    _is_right(page)
    page.keyboard.press("1")
    page.wait_for_selector("text=1 answered")
    page.reload()
    assert page.is_visible("text=1 answered")
    page.keyboard.press("u")
    page.wait_for_selector("text=0 answered")
    page.context.set_offline(True)
    page.keyboard.press("2")
    page.wait_for_timeout(300)
    page.context.set_offline(False)
    page.goto(f"{site.base}/vote")
    assert page.is_visible("text=0 answered")  # a lost answer is not confirmed
    for _ in range(20):
        if not page.is_visible("form.answers"):
            break
        with page.expect_navigation():
            page.keyboard.press("2")
    _is_right(page)
    page.go_back()
    page.context.close()
    made = fork_server.finish("pairs", site.run, "--signal", "human")
    assert made.returncode == 0, made.stderr
    assert len((site.run / "pairs" / "pairs.jsonl").read_text("utf-8").splitlines()) == 3


def test_labels_on_a_phone(chrome: Browser, site: Site) -> None:
    page = _enter(chrome, site.links["lea"], viewport=PHONE, has_touch=True, is_mobile=True)
    page.wait_for_selector("form.answers")
    boxes = page.locator("input[name=label]")
    if boxes.count():
        boxes.first.tap()
        page.locator("form.answers .choices > button").tap()
    else:
        page.locator("button[name=label]").first.tap()
    page.wait_for_selector("text=1 answered")
    page.reload()
    assert page.is_visible("text=1 answered")
    _is_right(page)
    page.context.close()
    _take_into_a_file(site.run)


def _take_into_a_file(run: Path) -> None:
    """Take the labels of the page into the layer, and export it: the one label is in the file."""
    people = str(run / "people" / "people.db")
    for command in (
        ["annotate", str(run), "--labels", "teacher_moves", "--people", people],
        ["export", str(run), "--to", "hf", "-o", str(run.parent / "labelled")],
    ):
        made = fork_server.finish(*command)
        assert made.returncode == 0, made.stderr
    with People(run) as kept:
        ((_unit, person), answer), *_ = kept.read_latest_answers("label teacher_moves").items()
    assert person == "lea"
    tables = [
        pyarrow.parquet.read_table(file) for file in sorted((run.parent / "labelled").rglob("*.parquet"))
    ]
    rows = [turns for table in tables for turns in table["labels.teacher_moves"].to_pylist()]
    labels = [one for turns in rows for one in turns or () if one]
    assert len(labels) == 1
    assert answer.value["labels"][0] in json.dumps(labels)


def test_two_people_talk_and_lose_nothing(chrome: Browser, tmp_path: Path) -> None:
    run = tmp_path / "run"
    people = [f"backends.{role}={{type: human}}" for role in ("teacher", "student")]
    options = [part for setting in (*people, *PLAY) for part in ("--set", setting)]
    making = fork_server.Popen(
        "generate", str(ROOT / "jobs" / "selfplay.yaml"), "-o", str(run), *options,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        while not (run / "people" / "waiting.db").exists():
            assert making.poll() is None
            time.sleep(0.1)
        with _pages(run, tmp_path) as (_, link):
            owner = _enter(chrome, link)
            links = {
                role: _invite(owner, link.partition("/enter")[0], role) for role in ("teacher", "student")
            }
            _is_right(owner)
            tea, sue = (_enter(chrome, links[role]) for role in ("teacher", "student"))
            _say(tea, "Hello Sue, what do you know about it already?")
            sue.wait_for_selector("text=what do you know about it already?")
            sue.reload()
            sue.fill("textarea", "Half of")
            tea.wait_for_selector("text=Somebody is writing")
            _is_right(sue)
            sue.context.set_offline(True)
            sue.wait_for_selector("text=No connection")
            sue.context.set_offline(False)
            assert sue.input_value("textarea") == "Half of"
            sue.fill("textarea", "Nothing yet. I am glad to be here.")
            sue.click("text=Send and say goodbye")
            for one in (tea, sue):
                one.wait_for_selector("text=The conversation is over")
            sue.go_back()
            sue.reload()
            sue.wait_for_selector("text=The conversation is over")
            _is_right(sue)
            assert making.wait(180) == 0
        with Mailbox(run) as mailbox:
            times = [one.times for one in mailbox.list_done_requests()]
        assert len(times) == 2
        for one in times:
            assert one.asked is not None
            assert one.seen is not None
            assert one.typed is not None
            assert one.asked <= one.seen <= one.typed <= one.at
        said = (run / "shards").rglob("*.json*")
        assert sum(path.read_text("utf-8").count("I am glad to be here.") for path in said) >= 1
    finally:
        making.terminate()  # SIGKILL would not reach the fork of this process
        making.communicate(timeout=180)


def _invite(owner: Page, base: str, role: str) -> str:
    open_ready(owner, f"{base}/")
    address = owner.get_attribute("h2 a", "href") or ""
    open_ready(owner, f"{base}/people/{address.rpartition('/')[2]}")
    owner.fill("#names", f"{role}1")
    owner.select_option("#task", f"play {role}")
    owner.click("text=Make links")
    return owner.inner_text("section[aria-labelledby=links] code")


def _say(page: Page, text: str) -> None:
    page.wait_for_selector("textarea")
    page.fill("textarea", text)
    page.keyboard.press("Enter")
