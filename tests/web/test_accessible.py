"""Every page of the application in a real browser is accessible.

No axe-core violation in light and dark, on a desk and on a phone, and no content outside the screen. The list
of pages is the application's own table of routes.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests import ROOT, fork_server
from tests.dose import LONG, dose
from tests.web.serving import LOOKS, RULES, browsing, open_ready, serving, violations
from tests.web.test_voting import routes_of_the_application

pytestmark = pytest.mark.integration

SIGHTS = dose(
    [("light", 1280), ("dark", 390)], [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
)
NO_PAGES = {"/events", "/static/{name}", "/people/{run}/answers.jsonl", "/play/state"}  # data, and files
LEADS_ON = {"/task"}  # to the page of a person's task
PAPERS = {"consent": "consent.md", "before": "before.yaml", "after": "after.yaml"}
SHOTS = os.environ.get("EDGEN_SHOTS")  # a folder for a picture of each


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browsing() as found:
        yield found


class Walk:
    """A walk over the pages, which notes the visited routes."""

    def __init__(self, chrome: Browser, folder: Path, link: str) -> None:
        self.chrome, self.folder, self.link = chrome, folder, link
        self.base = link.partition("/enter")[0]
        self.seen: set[str] = set()
        self.wrong: list[object] = []
        self.owner = self.enter(link)

    def enter(self, link: str) -> Page:
        page = self.chrome.new_context(bypass_csp=True).new_page()
        page.goto(link)
        page.wait_for_url(lambda url: "/enter" not in url)  # which leads to another page
        return page

    def look(self, page: Page, name: str, route: str | None = None) -> None:
        """Look at the open page."""
        for scheme, width in SIGHTS:
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            is_first = (scheme, width) == SIGHTS[0]
            found = violations(page, RULES if is_first else LOOKS) if is_first or LONG else []
            if page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
                found.append(("wider than the screen", []))
            self.wrong += [(name, scheme, width, *one) for one in found]
            if SHOTS:
                page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png", full_page=True)
        if route is not None:
            self.seen.add(route)

    def open(self, route: str, name: str, **parts: str) -> Page:
        """Open the owner's page at a route, and look at it."""
        path, query = route, parts.pop("query", "")
        for key, value in parts.items():
            path = path.replace(f"{{{key}}}", value)
        assert "{" not in path, f"{path}: say what stands for the part in braces"
        answer = open_ready(self.owner, f"{self.base}{path}{query}")
        assert "text/html" in answer.headers["content-type"], path
        self.look(self.owner, name, route)
        return self.owner

    def invite(self, slug: str, name: str, task: str) -> str:
        open_ready(self.owner, f"{self.base}/people/{slug}")
        self.owner.fill("#names", name)
        self.owner.select_option("#task", task)
        self.owner.click("text=Make links")
        return self.owner.inner_text("section[aria-labelledby=links] code")


def _generate(run: Path, job: str, *settings: str) -> object:
    options = [part for setting in settings for part in ("--set", setting)]
    return fork_server.Popen("generate", str(ROOT / "jobs" / f"{job}.yaml"), "-o", str(run), *options)


@pytest.mark.only_long
def test_every_page_is_accessible(chrome: Browser, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    rated = _generate(outputs / "rated", "rated_pairs", "conversations=3", "split.test=0")
    assert rated.wait(180) in (0, 3)  # type: ignore[attr-defined]
    papers = ", ".join(f"{key}: {ROOT / 'questionnaires' / 'people' / file}" for key, file in PAPERS.items())
    talk = _generate(
        outputs / "talk", "selfplay", "conversations=1", "replicates=1", "branch=null", "selfplay.closing=null",
        f"backends.student={{type: human, {papers}}}",
    )  # fmt: skip
    while not (outputs / "talk" / "people" / "waiting.db").exists():
        time.sleep(0.1)
    chats = tmp_path / "chats.jsonl"
    turns = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
    chats.write_text("\n".join(json.dumps({"id": f"c{n}", "messages": turns}) for n in range(120)), "utf-8")
    try:
        with serving(outputs, chats, folder=tmp_path) as link:
            walk = Walk(chrome, tmp_path, link)
            slugs = _owner(walk)
            _voter_and_labeller(walk, slugs["rated_pairs"])
            _player(walk, slugs["selfplay"])
            walk.open("/people/{run}", "people-after", run=slugs["rated_pairs"])
            stranger = chrome.new_context(bypass_csp=True).new_page()
            stranger.goto(f"{walk.base}/")
            walk.look(stranger, "stranger")
    finally:
        talk.kill()  # type: ignore[attr-defined]
        talk.wait()  # type: ignore[attr-defined]
    table = {route.path for route in routes_of_the_application(outputs / "rated") if route.method == "GET"}
    assert table - NO_PAGES - LEADS_ON == walk.seen
    assert walk.wrong == []


def _owner(walk: Walk) -> dict[str, str]:
    page = walk.open("/", "runs")
    slugs = {
        one.inner_text(): (one.get_attribute("href") or "").rpartition("/")[2]
        for one in page.query_selector_all("h2 a, h3 a")
    }
    rated = next(slug for name, slug in slugs.items() if "rated" in name)
    slugs = {"rated_pairs": rated, "selfplay": next(s for n, s in slugs.items() if "talk" in n or "selfplay" in n)} | slugs  # fmt: skip
    walk.open("/run/{run}", "list-of-chats", run=slugs["chats.jsonl"])
    walk.open("/run/{run}", "list", run=rated, query="?q=the&order=-words")
    page = walk.open("/run/{run}", "list-chosen", run=rated)
    first = (page.query_selector_all(".entries a.title")[0].get_attribute("href") or "").rpartition("/")[2]
    walk.open("/run/{run}/{id}", "conversation", run=rated, id=first)
    walk.open("/run/{run}/{id}", "no-conversation", run=rated, id="nothing")
    walk.open("/requests/{run}/{id}", "requests", run=rated, id=first)
    walk.open("/beside", "beside", query=f"?left={rated}:{first}&right={rated}&right_id=1")
    walk.open("/people/{run}", "people", run=rated)
    open_ready(walk.owner, f"{walk.base}/nowhere")
    walk.look(walk.owner, "nowhere")
    return slugs


def _voter_and_labeller(walk: Walk, slug: str) -> None:
    link = walk.invite(slug, "vera", "vote")
    walk.look(walk.owner, "links")
    walk.owner.fill("#names", "an\u202en")
    with walk.owner.expect_navigation():
        walk.owner.click("text=Make links")
    walk.look(walk.owner, "people-problem")
    vera = walk.enter(link)
    vera.wait_for_selector("form.answers")
    walk.look(vera, "vote", "/vote")
    vera.goto(f"{walk.base}/label")
    walk.look(vera, "another-task")
    vera.goto(f"{walk.base}/vote")
    while vera.query_selector("form.answers") is not None:
        with vera.expect_navigation():
            vera.click("button[value=first]")
    walk.look(vera, "vote-done")
    from edgen.web.options import PeopleOptions
    from edgen.web.people.inviting import set_up

    run = walk.folder / "outputs" / "rated"
    key = set_up([run], PeopleOptions(label="teacher_moves", invite="lea"))["lea"]
    lea = walk.enter(f"{walk.base}/enter?key={key}")
    lea.wait_for_selector("form.answers")
    walk.look(lea, "label", "/label")


def _player(walk: Walk, slug: str) -> None:
    role = "play student"
    ann, ben = (walk.enter(walk.invite(slug, name, role)) for name in ("ann", "ben"))
    for page, name in ((ann, "ann"), (ben, "ben")):
        page.wait_for_selector("#paper")
        if name == "ann":
            walk.look(page, "consent", "/play")
        page.click("text=I agree")
        page.wait_for_selector("text=Some questions first")
        if name == "ann":
            page.click("#paper button")
            page.wait_for_selector("[role=alert]")
            walk.look(page, "before-problem")
        for field in dict.fromkeys(
            one.get_attribute("name") for one in page.query_selector_all("input[type=radio]")
        ):
            page.click(f"input[name='{field}'] >> nth=0")
        page.click("#paper button")
        page.wait_for_selector("#answer" if name == "ann" else "text=The lobby")
        walk.look(page, "answer" if name == "ann" else "lobby")
    ann.click("#answer button >> nth=0")
    ann.wait_for_selector("[role=alert]")
    walk.look(ann, "answer-problem")
    ann.fill("textarea", "Why is that so?")
    ann.click("#answer button >> nth=0")
    for _ in range(1800):
        if re.search("Why is that so", ann.inner_text("#play")):
            break
        ann.wait_for_timeout(100)
    ann.wait_for_selector("#answer")
    walk.look(ann, "conversation-of-two")
    ann.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    ann.click("text=Leave for good")
    ann.wait_for_selector("text=Some questions about it")
    walk.look(ann, "after")
    for field in dict.fromkeys(
        one.get_attribute("name") for one in ann.query_selector_all("input[type=radio]")
    ):
        ann.click(f"input[name='{field}'] >> nth=0")
    ann.click("#paper button")
    ann.wait_for_selector("text=The conversation is over")
    walk.look(ann, "over")
