"""`edgen batch cancel`: end batches at the provider, keep what they have answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgen.cli.batch.list_ import RunArgument
from edgen.cli.options import JsonOption, TrustOption
from edgen.cli.output import note, print_json, print_line
from edgen.cli.trusting import Trust
from edgen.cli.work import made_backends, worded
from edgen.errors import UsageError
from edgen.rundir import RunDir

if TYPE_CHECKING:
    from edgen.backends.batches import Batches
    from edgen.engine.handing import Held


def command(
    run: RunArgument,
    numbers: Annotated[
        list[int] | None,
        typer.Argument(
            metavar="[NUMBER]...", help="Which ones, as `edgen batch list` numbers them; all, if none."
        ),
    ] = None,
    trust_host: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """End a run's batches that are out, wait until the provider has ended them, and read what they answered.

    Their other requests are asked again when the run is gone on with. Request files that were written for somebody
    to send are given up. A batch that the provider has lost is given up, too.

    Example: edgen batch cancel outputs/nightly
    """
    from edgen.engine.handing import batches_of
    from edgen.ledger import OPEN

    rundir, trust = RunDir(run), Trust(trust_host)
    rundir.require()
    with worded(rundir.path), rundir.held():
        known = batches_of(rundir)
        there = {batch.number for held in known for batch in held.batches if batch.state in OPEN}
        if missing := sorted(set(numbers or ()) - there):
            raise UsageError(
                f"batch {missing[0]} of {run} is not out (out: {', '.join(map(str, sorted(there))) or 'none'}); "
                f"see `edgen batch list {run}`."
            )
        wanted = set(numbers or there)
        ended = [asyncio.run(_cancel(rundir, held, wanted, trust)) for held in known]
    total = {key: sum(each[key] for each in ended) for key in ("ended", "answered", "unanswered")}
    if json:
        print_json({"run": str(run), **total})
    elif not total["ended"]:
        print_line("No batch of this run is out.")
    else:
        print_line(
            f"{total['ended']} batch{'es' if total['ended'] > 1 else ''} ended; {total['answered']:,} answers were read and kept. Requests without an "
            "answer are asked again by `edgen generate`, online or --via batch."
        )


async def _cancel(rundir: RunDir, held: Held, wanted: set[int], trust: Trust) -> dict[str, Any]:
    from edgen.backends.batches import PATIENCE, batches
    from edgen.engine.handing import give_up, job_of
    from edgen.engine.owned import require_own
    from edgen.events import Events
    from edgen.ledger import OPEN, Ledger

    out = [batch for batch in held.batches if batch.state in OPEN and batch.number in wanted]
    if not out:
        return {"ended": 0, "answered": 0, "unanswered": 0}
    job = job_of(rundir, held)
    require_own(held.path, out, job.backends)
    events = Events()
    events.listen(lambda event: note(event.text))
    at_provider = {batch.backend for batch in out if batch.state not in ("written", "ready")}
    configs = {name: job.backends[name] for name in sorted(at_provider)}
    services: dict[str, Batches] = {}
    patience = min(job.limits.give_up_after, PATIENCE)
    async with (
        made_backends(configs, job.limits, trust) as backends,
        Ledger(held.path, create=False) as ledger,
    ):
        import os

        try:
            for name, backend in backends.items():
                services[name] = batches(configs[name], backend, environ=os.environ, patience=patience)
            reading = await give_up(job, ledger, services, [batch.number for batch in out], events)
        finally:
            for service in services.values():
                await service.aclose()
    return {"ended": len(out), "answered": reading.answered, "unanswered": reading.unanswered}
