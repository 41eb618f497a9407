"""Two servers in one browser, a restart on another port, two tabs and the back button, in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from edgen.store.run_folder import RunFolder
from edgen.store.votes import read_stored_votes
from tests.web.serving import browsing
from tests.web.test_voting import make_run, serve

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "outputs" / "rated")


def _enter(port: int, key: str) -> str:
    return f"http://127.0.0.1:{port}/enter?key={key}"


def test_two_servers_are_used_at_once(chrome: Browser, run: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "more" / "elsewhere")
    with serve(run) as one, serve(other) as two, chrome.new_context() as context:
        pages = [context.new_page(), context.new_page()]
        for page, served in zip(pages, (one, two), strict=True):
            page.goto(_enter(served.site.port, served.site.key))
            page.wait_for_url(f"http://127.0.0.1:{served.site.port}/")
        for page, name in zip(pages, ("rated", "elsewhere"), strict=True):
            page.reload()
            assert page.text_content("h2 a") == name


def test_a_person_goes_on_where_the_server_starts_on_another_port(chrome: Browser, run: Path) -> None:
    with chrome.new_context() as context:
        page = context.new_page()
        with serve(run, "--vote", "--invite", "ann", "--check-every", "0") as served:
            page.goto(_enter(served.site.port, served.keys["ann"]))
            page.wait_for_url("**/vote")
            page.click("text=First is better")
            page.wait_for_selector("text=1 answered")
            owner = context.new_page()
        with serve(run) as again:
            assert again.site.port != served.site.port
            page.goto(f"http://127.0.0.1:{again.site.port}/vote")  # no link, but the earlier cookie
            page.click("text=Second is better")
            page.wait_for_selector("text=2 answered")
            owner.goto(f"http://127.0.0.1:{again.site.port}/")
            assert "This page is not for you" in owner.content()  # an earlier server's owner is unknown here
    assert sum(map(len, read_stored_votes(RunFolder(run)).values())) == 2


def test_two_tabs_and_the_back_button_count_one_vote_a_pair(chrome: Browser, run: Path) -> None:
    with (
        serve(run, "--vote", "--invite", "ann", "--check-every", "0") as served,
        chrome.new_context() as context,
    ):
        one, two = context.new_page(), context.new_page()
        one.goto(_enter(served.site.port, served.keys["ann"]))
        one.wait_for_url("**/vote")
        two.goto(f"http://127.0.0.1:{served.site.port}/vote")
        units = [page.get_attribute("input[name=unit]", "value") for page in (one, two)]
        assert units[0] == units[1]
        one.click("text=First is better")
        one.wait_for_selector("text=1 answered")
        two.click("text=Second is better")  # the same pair again, on a page of its own: the later vote counts
        two.wait_for_selector("text=1 answered")
        two.go_back()
        two.wait_for_selector("input[name=unit]", state="attached")
        shown = two.get_attribute("input[name=unit]", "value")  # not cached: back shows the next one
        two.click("text=Equally good")
        pairs = len({*units, shown})
        two.wait_for_selector(f"text={pairs} answered")
    votes = [vote for cast in read_stored_votes(RunFolder(run)).values() for vote in cast]
    assert len(votes) == pairs
    assert [vote.choice for vote in votes].count("tie") == 1
