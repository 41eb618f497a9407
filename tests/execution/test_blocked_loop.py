"""An event loop that other code blocks: signals still end the command, and a plugin that
blocks it is named."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time

import pytest

from edgen.core import system
from edgen.runtime import loop_watch
from edgen.runtime.loop_watch import LoopWatch


def test_a_second_signal_interrupts_code_that_keeps_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_BLOCKED", 0.0)
    heard: list[int] = []

    async def keep_the_loop() -> None:
        with system.handle_signals(asyncio.get_running_loop(), (signal.SIGINT,), heard.append):
            for _ in range(100):
                os.kill(os.getpid(), signal.SIGINT)
                before = time.monotonic()
                while time.monotonic() == before:
                    pass

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(keep_the_loop())
    assert heard == []


def test_signals_that_the_loop_comes_to_raise_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_BLOCKED", 0.0)
    heard: list[int] = []

    async def hear() -> None:
        with system.handle_signals(asyncio.get_running_loop(), (signal.SIGINT,), heard.append):
            for count in range(1, 4):
                os.kill(os.getpid(), signal.SIGINT)
                while len(heard) < count:
                    await asyncio.sleep(0)

    asyncio.run(hear())
    assert heard == [signal.SIGINT] * 3


def test_a_plugin_that_keeps_the_loop_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop_watch, "describe_running", lambda _: "The protocol 'odd' of odd-pack 1.0")
    watch = LoopWatch(threading.get_ident())
    with caplog.at_level(logging.WARNING, "edgen"):
        for seconds in (loop_watch.BLOCKED - 1, loop_watch.BLOCKED + 1, loop_watch.BLOCKED + 2):
            watch.check(watch._came_by + seconds)
    (record,) = caplog.records
    assert (
        "The protocol 'odd' of odd-pack 1.0 has kept all other calls waiting for 21 s" in record.getMessage()
    )
