"""A server of pages in a process of its own, and a real browser that opens them."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import ROOT, fork_server
from tests.report.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Response

_PATIENCE = 180_000.0  # milliseconds for each expected change of a page
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
# Rules about colours and sizes; all other violations occur in each look or in none.
LOOKS = {
    "type": "rule",
    "values": ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"],
}


def start_pages(
    *words: str | Path, folder: Path, cwd: Path = ROOT
) -> tuple[fork_server.Popen, dict[str, Any]]:
    """Start `edgen web` for a user whose home is `folder`; return it once it listens, and its output."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    environ |= {"PYTHONPATH": str(ROOT)} | {
        key: value for key, value in os.environ.items() if key == "TMPDIR"
    }
    server = fork_server.Popen(
        "web", *words, "--no-browser", "--json", stdout=subprocess.PIPE, cwd=cwd, env=environ
    )
    assert server.stdout is not None
    lines = ""
    while lines.count("{") != lines.count("}") or not lines.rstrip().endswith("}"):
        line = server.stdout.readline()
        assert line, f"the server ended: {lines}"
        lines += line
    return server, json.loads(lines)


@contextlib.contextmanager
def serving(*paths: Path, folder: Path, cwd: Path = ROOT) -> Iterator[str]:
    """Serve pages of these; yield the owner's link."""
    server, told = start_pages(*paths, folder=folder, cwd=cwd)
    with server:
        try:
            yield told["url"]
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(180) == 0


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Start Chromium."""
    from playwright.sync_api import sync_playwright  # half a second of each process that collects tests

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        new_context = found.new_context

        def new_patient_context(**options: Any) -> BrowserContext:
            context = new_context(**options)
            context.set_default_timeout(_PATIENCE)
            return context

        found.new_context = new_patient_context  # type: ignore[method-assign]
        try:
            yield found
        finally:
            found.close()


@functools.cache
def _axe() -> str:
    found = importlib.util.find_spec("axe_playwright_python")
    assert found is not None
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text("utf-8")


def violations(page: Page, rules: Mapping[str, object] = RULES) -> list[tuple[str, list[str]]]:
    """Return axe-core's findings on a page: the rule, and the elements.

    With `LOOKS`, check only the rules that depend on the look.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    options = json.dumps({"runOnly": rules, "resultTypes": ["violations"]})
    found: dict[str, Any] = page.evaluate(f"axe.run(document, {options})")
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found["violations"]]


def open_ready(page: Page, address: str) -> Response:
    """Open a page once its index is built."""
    from playwright.sync_api import Error

    for _ in range(1800):
        try:
            answer = page.goto(address)
        except Error as problem:  # the page reloads itself if the list of runs has changed
            if "interrupted by another navigation" not in str(problem):
                raise
            continue
        if answer is not None and answer.status != 202:
            return answer
        time.sleep(0.1)
    raise AssertionError("the index was not built")
