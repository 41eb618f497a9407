"""A headless Chromium, driven by its DevTools protocol: a report as its reader gets it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

# Chromium without windows takes less than half the CPU. It is named by its path: Debian's script for it is a second process.
NAMES = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-default-apps", "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-port=0",
)  # fmt: skip
PATIENCE = 120  # seconds


def chromium() -> str:
    """Return the path of the program, or skip the test; in CI it must exist."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = "there is no Chromium on this machine; as root, sh .ci/setup-browser installs it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class Page:
    """One tab.

    `trouble` lists errors, dialogs and requests other than for its own file.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self._reader = asyncio.create_task(self._read())
        self._address = ""
        self.trouble: list[str] = []
        self.requests: list[str] = []

    async def _read(self) -> None:
        async for message in self._socket:
            event = message.json()
            if "id" in event:
                self._answers.pop(event["id"]).set_result(event)
            else:
                self._heard(event["method"], event.get("params", {}))

    def _heard(self, method: str, facts: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.trouble.append(f"exception: {facts['exceptionDetails']['text']}")
        elif method == "Runtime.consoleAPICalled":
            self.trouble.append(f"console: {facts['args']}")
        elif method == "Log.entryAdded":
            self.trouble.append(f"log: {facts['entry']['text']}")
        elif method == "Page.javascriptDialogOpening":
            self.trouble.append(f"dialog: {facts['message']}")

    async def ask(self, method: str, **facts: Any) -> dict[str, Any]:
        """Send a command of the protocol; return its result."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": facts})
        answer = await asyncio.wait_for(self._answers[number], PATIENCE)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def look(
        self, *, width: int = 1280, height: int = 900, dark: bool = False, touch: bool = False
    ) -> None:
        """Set the window's size and the reader's preference for light or dark."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        wish = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.ask("Emulation.setEmulatedMedia", features=wish)

    async def open(self, path: Path) -> None:
        """Load a file and wait until it is loaded."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.ask(f"{domain}.enable")
        self._loaded.clear()
        await self.ask("Page.navigate", url=path.resolve().as_uri())
        await asyncio.wait_for(self._loaded.wait(), PATIENCE)

    async def value(self, script: str) -> Any:
        """Return the value of a script in the page."""
        answer = await self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def screenshot(self, path: Path) -> None:
        """Write a screenshot of the whole page."""
        shot = await self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    async def close(self) -> None:
        self._reader.cancel()
        await self._socket.close()


@contextlib.asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Page]:
    """Yield a tab of a Chromium with its own profile in the folder `profile`; close it at the end."""
    process = await asyncio.create_subprocess_exec(
        chromium(), *FLAGS, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port = await asyncio.wait_for(_port(profile / "DevToolsActivePort"), PATIENCE)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                tabs = await answer.json()
            tab = next(tab for tab in tabs if tab["type"] == "page")
            socket = await session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0)
            page = Page(socket)
            try:
                yield page
            finally:
                with contextlib.suppress(Exception):
                    await page.ask("Browser.close")
                await page.close()
    finally:
        if process.returncode is None:
            try:
                await asyncio.wait_for(process.wait(), 60)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _port(file: Path) -> int:
    while True:
        with contextlib.suppress(FileNotFoundError, IndexError, ValueError):
            return int(file.read_text().splitlines()[0])
        await asyncio.sleep(0.05)
