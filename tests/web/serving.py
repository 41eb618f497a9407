"""A server of pages in a process of its own, and a real browser that looks at it."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, Page, Response, sync_playwright

from tests import ROOT
from tests.report.browser import chromium

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@contextlib.contextmanager
def serving(*paths: Path, folder: Path, cwd: Path = ROOT) -> Iterator[str]:
    """Serve pages of these; yield the owner's link."""
    command = [sys.executable, "-m", "edgen", "web", *map(str, paths), "--no-browser", "--json"]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    environ |= {"PYTHONPATH": str(ROOT)} | {
        key: value for key, value in os.environ.items() if key == "TMPDIR"
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=cwd, env=environ, text=True) as server:
        assert server.stdout is not None
        lines = ""
        while not lines.rstrip().endswith("}"):
            lines += server.stdout.readline()
            assert server.poll() is None, f"the server ended: {lines}"
        try:
            yield json.loads(lines)["url"]
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(30) == 0


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Start Chromium."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
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


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """Return what axe-core finds wrong with a page: the rule, and the elements."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    options = json.dumps({"runOnly": RULES, "resultTypes": ["violations"]})
    found: dict[str, Any] = page.evaluate(f"axe.run(document, {options})")
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found["violations"]]


def open_ready(page: Page, address: str) -> Response:
    """Open a page once the index that it needs is built."""
    for _ in range(300):
        try:
            answer = page.goto(address)
        except Error as problem:  # the page loads itself anew where the list of runs has changed
            if "interrupted by another navigation" not in str(problem):
                raise
            continue
        if answer is not None and answer.status != 202:
            return answer
        time.sleep(0.1)
    raise AssertionError("the index was not built")
