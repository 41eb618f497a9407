"""The end of a command while signals keep arriving."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from edgen.cli.output import CommandEnd, call_at_end, run_guarded
from edgen.core.errors import SignalError


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.crash
def test_a_signal_while_it_is_told_how_it_ended_changes_nothing(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    told: list[int] = []

    def tell(end: CommandEnd) -> bool:
        os.kill(os.getpid(), number)
        told.append(end.code)
        return True

    def work() -> None:
        call_at_end(tell)
        raise SignalError(15, "terminated")

    assert run_guarded(work) == 143
    assert told == [143]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.crash
def test_a_second_one_while_the_first_is_heeded_does_not_break_that_off() -> None:
    done: list[bool] = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            done.append(True)

    assert run_guarded(work) == 143
    assert done == [True]


@pytest.mark.crash
def test_a_signal_while_the_arguments_are_read_ends_with_its_own_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """typer treats it as Ctrl-C there and ends without a message."""
    app = typer.Typer()

    @app.command()
    def work(
        _: Annotated[str, typer.Option("--word", callback=lambda _: os.kill(os.getpid(), signal.SIGTERM))],
    ) -> None:
        raise AssertionError("the signal came before")

    assert run_guarded(lambda: app(["--word", "x"])) == 143
    assert "terminated" in capsys.readouterr().err


@pytest.mark.crash
def test_a_signal_that_asyncio_forgets_ends_with_its_own_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It arrives after the handler is installed and before asyncio counts signals: only the
    task is cancelled."""
    install = signal.signal

    def install_and_send(number: int, handler: Any) -> Any:
        before = install(number, handler)
        if isinstance(handler, functools.partial):
            os.kill(os.getpid(), signal.SIGINT)
        return before

    async def work() -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(signal, "signal", install_and_send)
    assert run_guarded(lambda: asyncio.run(work())) == 130
    assert capsys.readouterr().err == "edgen: interrupted.\n"


@pytest.mark.crash
def test_a_signal_in_code_that_is_executed_ends_with_its_own_number(tmp_path: Path) -> None:
    """With a plain KeyboardInterrupt, Python would end itself by SIGINT: imports execute code."""
    code = (
        "import os, signal, sys\nfrom edgen.cli.output import run_guarded\n"
        "def work():\n    exec('import os, signal; os.kill(os.getpid(), signal.SIGTERM); list(range(9))')\n"
        "sys.exit(run_guarded(work))"
    )
    (tmp_path / "ending.py").write_text(code)
    ended = subprocess.run(
        [sys.executable, "-m", "ending"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 143, ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.crash
def test_a_signal_while_a_loop_is_made_says_nothing_of_the_half_made_loop(number: signal.Signals) -> None:
    code = (
        "import asyncio, os, selectors, signal, sys\nfrom edgen.cli.output import run_guarded\n"
        "def selector():\n    os.kill(os.getpid(), int(sys.argv[1]))\n    list(range(9))\n"
        "selectors.DefaultSelector = selector\n"  # the loop creates one before it has sockets to close
        "async def work():\n    pass\n"
        "sys.exit(run_guarded(lambda: asyncio.run(work())))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(int(number))], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 128 + number
    assert "ignored" not in ended.stderr, ended.stderr
    assert ended.stderr.startswith("edgen: ")
