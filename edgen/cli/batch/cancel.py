"""`edgen batch cancel`: end batches at the provider, keep what they have answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from edgen.cli.options.common import JsonOption, RunArgument, TrustOption
from edgen.cli.output import print_value

if TYPE_CHECKING:
    from edgen.api.batches import Cancelled


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
    from edgen.api.batches import cancel_batches
    from edgen.cli.control import make_control

    cancelled = cancel_batches(run, numbers or (), make_control(trust_host=trust_host))
    print_value(cancelled, _render(cancelled), json=json)


def _render(cancelled: Cancelled) -> Iterator[str]:
    if not cancelled.ended:
        yield "No batch of this run is out."
        return
    yield (
        f"{cancelled.ended} batch{'es' if cancelled.ended > 1 else ''} ended; {cancelled.answered:,} answers were read "
        "and kept. Requests without an answer are asked again by `edgen generate`, online or --via batch."
    )
