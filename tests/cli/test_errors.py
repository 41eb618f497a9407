"""How a command ends where signals keep coming."""

from __future__ import annotations

import os
import signal

import pytest

from edgen.cli.errors import at_end, run_guarded
from edgen.core.errors import SignalError


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.crash
def test_a_signal_while_it_is_told_how_it_ended_changes_nothing(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    told: list[int] = []

    def tell(code: int, _text: str | None, _trace: str | None) -> bool:
        os.kill(os.getpid(), number)
        told.append(code)
        return True

    def work() -> None:
        at_end(tell)
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
