"""Reading pages in a real browser: accessible, dark, on a phone, without scripts, by keyboard."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page

from tests import ROOT, fork_server
from tests.dose import LONG
from tests.web.serving import browsing, open_ready, serving, violations

pytestmark = pytest.mark.integration

SIGHTS = [(1280, "light"), (1280, "dark"), (390, "light"), (360, "dark"), (1600, "light")]


class Served(NamedTuple):
    link: str
    base: str
    folder: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("browser")
    outputs = folder / "outputs"
    for job, count in (("experiment", 4), ("selfplay", 2)):
        # In a process: Playwright has an event loop in this thread.
        command = ["generate", f"jobs/{job}.yaml", "-n", str(count), "-o", str(outputs / job)]
        made = fork_server.finish(*command, cwd=ROOT)
        assert made.returncode in (0, 3)
    chats = folder / "chats.jsonl"
    rows = [
        {
            "id": f"c{n}",
            "source": "forum",
            "messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}],
        }
        for n in range(120)
    ]
    chats.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    with serving(outputs, chats, folder=folder) as link:
        yield Served(link, link.partition("/enter")[0], folder)


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browsing() as found:
        yield found


def _look(chrome: Browser, served: Served, **options: object) -> tuple[BrowserContext, Page]:
    context = chrome.new_context(**options)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(served.link)
    page.wait_for_url(f"{served.base}/")
    return context, page


def _addresses(page: Page, served: Served) -> list[str]:
    """Return the address of a page of every kind."""
    runs = {
        one.inner_text(): one.get_attribute("href") or "" for one in page.query_selector_all("h2 a, h3 a")
    }
    experiment, selfplay, chats = (
        served.base + runs[name] for name in ("experiment", "selfplay", "chats.jsonl")
    )
    open_ready(page, experiment)
    listed = page.query_selector_all(".entries a.title")
    accepted, refused = (served.base + (listed[at].get_attribute("href") or "") for at in (0, -1))
    open_ready(page, chats)
    chat = served.base + (page.query_selector_all(".entries a.title")[0].get_attribute("href") or "")
    slug = experiment.rpartition("/")[2]
    named = accepted.rpartition("/")[2]
    return [
        f"{served.base}/",
        experiment,
        f"{experiment}?is=arm:json&least.words=10&order=-words",
        accepted,
        refused,
        f"{experiment}/0",
        f"{selfplay}/0",
        f"{served.base}/requests/{slug}/{named}",
        f"{served.base}/beside?left={slug}:{named}&right={slug}&right_id=0",
        chats,
        chat,
        f"{served.base}/run/nothing",
    ]


@pytest.mark.long
def test_pages_are_accessible_and_fit(chrome: Browser, served: Served) -> None:
    context, page = _look(chrome, served, bypass_csp=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for address in _addresses(page, served):
        open_ready(page, address)
        for width, scheme in SIGHTS:
            page.set_viewport_size({"width": width, "height": 860})
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (address, width)
            if LONG or (width, scheme) == SIGHTS[-1]:
                assert violations(page) == [], (address, width, scheme)
    assert all(url.startswith((served.base, "data:")) for url in asked)
    context.close()


def test_pages_say_the_same_without_scripts(chrome: Browser, served: Served) -> None:
    texts = []
    for enabled in (True, False):
        context = chrome.new_context(java_script_enabled=enabled)
        page = context.new_page()
        trouble: list[str] = []
        page.on("pageerror", functools.partial(_note, trouble))
        open_ready(page, served.link)
        open_ready(page, f"{served.base}/")
        runs = {one.inner_text(): one.get_attribute("href") for one in page.query_selector_all("h2 a")}
        said = [page.inner_text("#runs article h2")]
        open_ready(page, f"{served.base}{runs['experiment']}?order=-words")
        said.append(page.inner_text("section[aria-label=Conversations]"))
        page.click(".entries li:nth-child(2) a")
        said.append(page.inner_text(".chat"))
        texts.append(said)
        assert trouble == []
        context.close()
    assert texts[0] == texts[1]


def _note(trouble: list[str], error: Error) -> None:
    trouble.append(str(error))


def test_a_conversation_is_found_and_read_by_keyboard_alone(chrome: Browser, served: Served) -> None:
    context, page = _look(chrome, served)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    _press_until(page, "document.activeElement.textContent === 'experiment'")
    page.keyboard.press("Enter")
    page.wait_for_selector("#q")
    _press_until(page, "document.activeElement.id === 'q'")
    page.keyboard.type("the")
    page.keyboard.press("Enter")
    page.wait_for_selector(".chosen")
    _press_until(page, "document.activeElement.matches('.entries a')")
    page.keyboard.press("Enter")
    page.wait_for_selector(".chat .turn")
    page.go_back()
    assert page.input_value("#q") == "the"
    page.reload()
    assert page.is_visible(".chosen")
    context.close()


def _press_until(page: Page, condition: str) -> None:
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate(condition):
            return
    raise AssertionError(f"never {condition}")


def test_a_job_is_started_watched_and_resumed_from_the_page(chrome: Browser, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    (tmp_path / "jobs").mkdir()
    job = {
        "name": "watched",
        "conversations": 600,
        "space": "education_dialogue",
        "prompt": "education_dialogue",
        "backends": {"default": {"type": "simulator", "latency_ms": 200}},
        "limits": {"in_flight": 4},
    }
    (tmp_path / "jobs" / "watched.yaml").write_text(json.dumps(job), "utf-8")
    with serving(tmp_path / "outputs", folder=tmp_path, cwd=tmp_path) as link:
        base = link.partition("/enter")[0]
        served = Served(link, base, tmp_path)
        context, page = _look(chrome, served)
        page.select_option("#job", "watched")
        page.click("section[aria-label='Start a job'] button")
        page.wait_for_selector("[data-run] .state.running", timeout=60_000)
        page.evaluate(
            "() => { window.shift = 0; new PerformanceObserver((list) => { for (const one of list.getEntries()) "
            "window.shift += one.value; }).observe({type: 'layout-shift', buffered: false}); }"
        )
        before = _accepted(page)
        for _ in range(600):  # the policy of the page forbids waiting for an expression
            if _accepted(page) > before + 10:
                break
            page.wait_for_timeout(100)
        assert _accepted(page) > before + 10
        assert page.evaluate("window.shift") < 0.001, (
            "a number with one digit more moves the word after it, no more"
        )
        page.click("button[aria-label='Stop watched']")
        page.wait_for_selector("button[aria-label='Resume watched']", timeout=60_000)
        stopped = _accepted(page)
        assert 0 < stopped < 600
        page.click("button[aria-label='Resume watched']")
        page.wait_for_selector("[data-run] .state.running", timeout=60_000)
        assert _accepted(page) >= stopped
        page.click("button[aria-label='Stop watched']")
        page.wait_for_selector("button[aria-label='Resume watched']", timeout=60_000)
        context.close()


def _accepted(page: Page) -> int:
    return int(re.sub(r"\D", "", page.inner_text("[data-run] [data-of=accepted]")))
