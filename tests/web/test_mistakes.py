"""Mistakes that people make by hand in a real browser.

Double clicks, a lost connection, a long paste, invisible answers, a reloaded page; and browsers without
JavaScript or cookies.
"""

from __future__ import annotations

import json
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from edgen.store.people import People
from edgen.store.people.mailbox import Mailbox
from edgen.web.options import PeopleOptions
from edgen.web.people.inviting import set_up
from tests import ROOT, fork_server
from tests.web.players import SELFPLAY, Pages, generate
from tests.web.serving import browsing, open_ready, serving, violations

pytestmark = pytest.mark.integration

PAPERS = {"consent": "consent.md", "before": "before.yaml", "after": "after.yaml"}
PERSON = ", ".join(f"{key}: {ROOT / 'questionnaires' / 'people' / file}" for key, file in PAPERS.items())
ONE = ("conversations=1", "replicates=1", "branch=null", "selfplay.closing=null")
MOST = 1_000  # characters of a turn


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of pairs."""
    run = tmp_path_factory.mktemp("rated") / "rated"
    made = fork_server.Popen("generate", str(ROOT / "jobs/rated_pairs.yaml"), "-n", "3", "-o", str(run))
    assert made.wait(120) in (0, 3)
    return run


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Path]:
    """Yield a run in which a person is the student, with consent and questions."""
    run = tmp_path / "talk"
    making = generate(SELFPLAY, run, *ONE, f"backends.student={{type: human, {PERSON}}}")
    try:
        while not (run / "people" / "waiting.db").exists():
            assert making.poll() is None
            time.sleep(0.1)
        yield run
    finally:
        making.terminate()
        making.communicate(timeout=180)


def enter(chrome: Browser, link: str, **options: object) -> Page:
    page = chrome.new_context(**options).new_page()  # type: ignore[arg-type]
    page.goto(link)
    page.wait_for_url(lambda url: "/enter" not in url)
    return page


def _choose(page: Page) -> None:
    for name in dict.fromkeys(
        one.get_attribute("name") for one in page.query_selector_all("input[type=radio]")
    ):
        page.click(f"input[name='{name}'] >> nth=2")


def _to_the_talk(page: Page) -> None:
    page.click("text=I agree")
    page.wait_for_selector("text=Some questions first")
    _choose(page)
    page.click("#paper button")
    page.wait_for_selector("#answer")


def test_a_double_click_votes_once_and_an_offline_vote_is_sent_later(chrome: Browser, rated: Path) -> None:
    key = set_up([rated], PeopleOptions(vote=True, per_unit=4, invite="dora"))["dora"]
    with Pages(rated) as pages:
        page = enter(chrome, f"http://127.0.0.1:{pages.port}/enter?key={key}")
        page.dblclick("button[value=first]")
        page.wait_for_selector("text=1 answered")
        page.wait_for_load_state()  # the page's scripts have come
        page.hover("button[value=first]")
        page.mouse.down(click_count=2)  # the second click of a double click on the page before
        page.mouse.up(click_count=2)
        page.context.set_offline(True)
        page.click("button[value=second]")
        page.wait_for_selector("text=nothing was sent")
        assert page.is_visible("form.answers")  # the unit is still shown
        page.context.set_offline(False)
        page.click("button[value=second]")
        page.wait_for_selector("text=2 answered")
        page.context.close()
    with People(rated) as people:
        assert len([*people.list_answers("vote", "dora")]) == 2


def test_a_text_stays_while_the_server_is_away_and_is_sent_to_the_next_one(
    chrome: Browser, talk: Path
) -> None:
    pages = Pages(talk)
    try:
        link = pages.invite("student", "ann")["ann"]
        page = enter(chrome, f"http://127.0.0.1:{pages.port}{link}", bypass_csp=True)
        assert not re.search(r"[a-z]\n[a-z]", page.inner_text("#paper .text"))  # lines of the file flow
        page.click("text=I agree")
        page.wait_for_selector("text=Some questions first")
        page.click("input[type=radio] >> nth=3")
        page.reload()
        page.wait_for_function(
            "document.querySelectorAll(':checked').length === 1"
        )  # the question is still answered
        _choose(page)
        page.click("#paper button")
        page.wait_for_selector("#answer")
        page.wait_for_load_state()  # the page's scripts have come
        page.fill("textarea", "I wrote this while nobody listened.")
        page.reload()
        page.wait_for_function("document.querySelector('textarea').value.startsWith('I wrote this')")
        pages.end(9)
        page.click("#answer button >> nth=0")
        page.wait_for_selector("text=nothing was sent")
        assert page.input_value("textarea") == "I wrote this while nobody listened."
        pages = Pages(talk, pages.port)
        page.click("#answer button >> nth=0")
        page.wait_for_selector(".turn >> text=I wrote this while nobody listened.")
        page.wait_for_function("Object.keys(sessionStorage).length === 0")  # a sent text is no draft any more
        page.context.close()
    finally:
        pages.end()
    with Mailbox(talk) as mailbox:
        said = [json.loads(one.text or "{}").get("text") for one in mailbox.list_done_requests()]
    assert said.count("I wrote this while nobody listened.") == 1


def test_answers_that_are_too_long_or_show_nothing_stay_on_the_page(chrome: Browser, talk: Path) -> None:
    with Pages(talk) as pages:
        page = enter(
            chrome, f"http://127.0.0.1:{pages.port}{pages.invite('student', 'ann')['ann']}", bypass_csp=True
        )
        _to_the_talk(page)
        for nothing in (" \n\t ", "\u200b\u2060\ufeff", "\u00ad\u200e"):
            page.fill("textarea", nothing)
            page.click("#answer button >> nth=0")
            page.wait_for_selector("text=rite")
            page.wait_for_selector("[role=alert]")
        draw = random.Random(1)
        long = "".join(chr(draw.randrange(0x4E00, 0x9FA0)) for _ in range(33_000))  # 99,000 bytes
        page.fill("textarea", long)
        page.click("#answer button >> nth=0")
        page.wait_for_selector(f"text={len(long):,} characters")
        assert page.input_value("textarea") == long
        assert violations(page) == []
        page.fill("textarea", long[:MOST])
        page.click("#answer button >> nth=0")
        page.wait_for_selector(f".turn >> text={long[:20]}")
        page.wait_for_selector("#answer textarea")
        page.fill("textarea", "👍🏽")
        page.click("#answer button >> nth=0")
        page.wait_for_selector(".turn >> text=👍🏽")
        page.context.close()
    with Mailbox(talk) as mailbox:
        said = [json.loads(one.text or "{}").get("text") for one in mailbox.list_done_requests()]
    assert said[:2] == [long[:MOST], "👍🏽"]


def test_without_scripts_a_person_agrees_answers_and_talks(chrome: Browser, talk: Path) -> None:
    with Pages(talk) as pages:
        link = f"http://127.0.0.1:{pages.port}{pages.invite('student', 'ann')['ann']}"
        page = enter(chrome, link, java_script_enabled=False)
        page.click("text=I agree")
        page.wait_for_selector("text=Some questions first")
        page.click("input[type=radio] >> nth=1")
        page.wait_for_timeout(4_000)  # longer than a waiting page takes to reload itself
        assert page.is_checked("input[type=radio] >> nth=1")
        _choose(page)
        page.click("#paper button")
        page.wait_for_selector("#answer")
        page.fill("textarea", "I have no scripts.")
        page.click("#answer button >> nth=0")
        page.wait_for_selector(".turn >> text=I have no scripts.")
        page.context.close()
        away = chrome.new_context().new_page()  # a browser that kept no cookie
        away.goto(f"http://127.0.0.1:{pages.port}/play")
        assert "allow cookies" in away.inner_text("main")
        away.context.close()


def test_without_scripts_people_vote_and_label(chrome: Browser, rated: Path) -> None:
    keys = set_up([rated], PeopleOptions(vote=True, per_unit=4, invite="nora"))
    keys |= set_up([rated], PeopleOptions(label="teacher_moves", invite="lena"))
    with Pages(rated) as pages:
        for name, press in (("nora", "button[value=tie]"), ("lena", "form.answers .choices button")):
            page = enter(
                chrome, f"http://127.0.0.1:{pages.port}/enter?key={keys[name]}", java_script_enabled=False
            )
            for box in page.query_selector_all("input[name=label]")[:1]:
                box.check()
            page.click(f"{press} >> nth=0")
            page.wait_for_selector("text=1 answered")
            page.context.close()


def test_zoomed_pages_leave_room_to_read(chrome: Browser, rated: Path) -> None:
    key = set_up([rated], PeopleOptions(vote=True, per_unit=4, invite="zoe"))["zoe"]
    with Pages(rated) as pages:
        page = enter(chrome, f"http://127.0.0.1:{pages.port}/enter?key={key}")
        for size in ((640, 400), (320, 400)):  # 1280 × 800 pixels at 200 and 400 per cent
            page.set_viewport_size({"width": size[0], "height": size[1]})
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            held = page.evaluate("document.querySelector('.answers').getBoundingClientRect().height")
            stays = page.evaluate("getComputedStyle(document.querySelector('.answers')).position")
            assert stays != "sticky" or held < size[1] / 2, (size, held)
        page.context.close()


def test_an_owner_starts_a_job_once_by_two_clicks(chrome: Browser, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "jobs").mkdir(parents=True)
    (project / "outputs").mkdir()
    job = (ROOT / "jobs/quickstart.yaml").read_text("utf-8")
    (project / "jobs" / "twice.yaml").write_text(re.sub(r"(?m)^name: \S+", "name: twice", job), "utf-8")
    with serving(project / "outputs", folder=tmp_path, cwd=project) as link:
        page = enter(chrome, link)
        page.wait_for_selector("text=no runs here yet")
        page.select_option("#job", "twice")
        page.fill("#count", "3")
        page.dblclick("text=Start >> nth=-1")
        page.wait_for_selector("h2 a >> text=twice")
        page.wait_for_selector("[data-of=state] >> text=complete")
        page.wait_for_timeout(1_500)
        assert page.query_selector("[data-started]") is None  # no second process that found the run locked
        open_ready(page, f"{link.partition('/enter')[0]}{page.get_attribute('h2 a', 'href')}?q=zzz")
        page.click("text=Show all conversations")
        assert page.is_visible("text=3 conversations")
        page.goto(f"{page.url.partition('?')[0]}/nothing")
        page.click("main a")
        assert page.is_visible("text=3 conversations")  # the list of that run, not of all runs
        page.context.close()


def test_a_page_shows_new_runs_although_one_of_its_buttons_was_pressed(
    chrome: Browser, tmp_path: Path
) -> None:
    """As after a double click, of which the second half comes when the next page is shown."""
    project = tmp_path / "project"
    (project / "outputs").mkdir(parents=True)
    with serving(project / "outputs", folder=tmp_path, cwd=project) as link:
        page = enter(chrome, link)
        page.hover("text=Start >> nth=-1")
        page.mouse.down()
        page.mouse.move(0, 0)
        page.mouse.up()
        assert page.evaluate("document.activeElement.tagName") == "BUTTON"
        other = page.context.new_page()
        other.goto(link.partition("/enter")[0])
        other.select_option("#job", "quickstart")
        other.fill("#count", "3")
        other.click("text=Start >> nth=-1")
        page.wait_for_selector("h2 a >> text=quickstart")
        page.context.close()


def test_a_very_long_text_shows_its_beginning_and_all_of_it_on_demand(
    chrome: Browser, tmp_path: Path
) -> None:
    word = "x" * 20_000
    turns = [{"role": "user", "content": word}, {"role": "assistant", "content": "Indeed."}]
    chats = tmp_path / "chats.jsonl"
    chats.write_text(json.dumps({"id": "long", "messages": turns}), "utf-8")
    with serving(chats, folder=tmp_path) as link:
        page = enter(chrome, link, bypass_csp=True)
        base = link.partition("/enter")[0]
        open_ready(page, f"{base}{page.get_attribute('h3 a', 'href')}")
        page.click(".entries a.title")
        page.wait_for_load_state()
        height = "document.documentElement.scrollHeight"
        page.wait_for_function(f"{height} < 3000")
        assert violations(page) == []
        page.click("text=Show all 20,000 characters")
        page.wait_for_function(f"{height} > 4000")
        page.click("text=Show the beginning alone")
        assert page.evaluate(height) < 3_000
        assert len(page.text_content(".turn .text") or "") == len(word)
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 249)"
        assert not page.is_visible("nav[aria-label=Pages]")
        assert page.is_visible("text=Indeed.")
        page.context.close()


def test_pages_with_live_figures_say_that_their_server_is_away_or_was_started_again(
    chrome: Browser, rated: Path
) -> None:
    pages = Pages(rated)
    runs = enter(chrome, pages.link)
    people = runs.context.new_page()
    people.goto(
        f"{pages.link.partition('/enter')[0]}/people/{(runs.get_attribute('h2 a', 'href') or '')[5:]}"
    )
    pages.end(signal.SIGKILL)
    for page in (runs, people):
        page.wait_for_selector("[role=status] >> text=The server does not answer")
    with Pages(rated, pages.port):
        for page in (runs, people):
            page.wait_for_selector("[role=status] >> text=Open the link that it printed")
        runs.context.close()
