"""The process of one partition, started by `edgen.generation.partitions`.

It reads its work from standard input, and writes notes, its state and its end to standard output, as lines of
JSON. When standard input ends, the parent process is gone: then it makes no more calls and exits at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import signal
from collections.abc import Callable, Iterator

from edgen.core.errors import EdgenError, LockedError, UselessError
from edgen.core.plugins.faults import find_fault
from edgen.core.plugins.unending_threads import end_process
from edgen.core.system import handle_signals
from edgen.execution.progress import Event, StatusEvent
from edgen.generation.arms import Generated, make_arms, plan_arms
from edgen.generation.partitions import PartitionMessage, PartitionWork
from edgen.runtime.control import Control, run_in_own_loop
from edgen.runtime.processes import keep_output, receive, report

_PATIENCE = 30.0  # seconds to wait for a killed start's process of this partition to end


def main() -> None:
    """Make the partition that standard input describes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # until it is ready
    keep_output()
    given: PartitionWork = pickle.loads(next(receive()))  # noqa: S301 - from the parent process
    control = Control(trusting=lambda: given.trust, interrupts=_forward_signals)
    control.events.listen(_on_event)
    made = 0
    ended: BaseException | None
    try:
        found = run_in_own_loop(_make(given, control))
        made, ended = found.status.calls.now or 0, found.ended
    except (EdgenError, OSError) as problem:
        ended = problem
    except BaseException as error:
        if (ended := find_fault(error)) is None:
            raise
    if ended is None:
        return report(PartitionMessage(done=True, made=made))
    reason = "useless" if isinstance(ended, UselessError) else getattr(ended, "reason", "error")
    code = getattr(ended, "exit_code", 2)
    report(PartitionMessage(done=True, made=made, ended=str(ended), code=code, reason=reason))
    return None


async def _make(given: PartitionWork, control: Control) -> Generated:
    clock = asyncio.get_running_loop().time
    until = clock() + _PATIENCE
    while True:
        try:
            source, plans = plan_arms(given.source, given.options, control)
            return await make_arms(source, plans, given.options, control)
        except LockedError:
            if clock() > until:
                raise
        await asyncio.sleep(0.5)


def _on_event(event: Event) -> None:
    if isinstance(event, StatusEvent):
        report(PartitionMessage(snapshot=event.snapshot))
    elif event.name == "note":
        report(PartitionMessage(note=event.text))


@contextlib.contextmanager
def _forward_signals(on_signal: Callable[[int], None]) -> Iterator[None]:
    with handle_signals(asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM), on_signal):
        report(PartitionMessage(ready=True))
        yield


if __name__ == "__main__":
    main()
    end_process()
