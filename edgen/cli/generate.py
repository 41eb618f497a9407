"""`edgen generate`: the main job, from a job file to finished train and test shards."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from edgen.cli import options as o
from edgen.cli.output import print_value
from edgen.cli.status import render_status
from edgen.core.options import option
from edgen.generation.options import GenerateOptions
from edgen.runtime.options import WorkOptions

if TYPE_CHECKING:
    from edgen.generation.arms import Generated


class PrintOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the output at the end."""

    show: Annotated[int, option("Print the first K conversations at the end.", metavar="K", ge=0)] = 0


# The options of an estimate, which --dry-run prints.
_ESTIMATED = ("conversations", "overrides", "allow_outside", "scenarios", "via", "output")


def command(
    job: o.JobArgument,
    *,
    options: GenerateOptions,
    printing: PrintOptions,
    dry_run: o.DryRunOption = False,
    work: WorkOptions,
    json: o.JsonOption = False,
) -> None:
    """Generate the conversations that a job file describes.

    Train and test files go to the folder outputs/NAME, with every answer of the models. After a stop, the
    same command resumes and pays for no answer twice. --dry-run prints the estimate of `edgen estimate`.

    Example: edgen generate jobs/quickstart.yaml -n 50 --set limits.in_flight=8
    """
    if dry_run:
        from edgen.cli.estimate import print_estimate
        from edgen.cost.options import EstimateOptions

        shared = {name: getattr(options, name) for name in _ESTIMATED}
        print_estimate(job, EstimateOptions(**shared), json=json)
        return

    from edgen.cli.control import make_control

    control = make_control(work, trust_code=options.trust_code, yes=options.yes)
    from edgen.generation.arms import generate
    from edgen.planning.load import JobSource
    from edgen.runtime.control import run_in_own_loop

    source = JobSource.of(job, options.changes, allow_outside=options.allow_outside)
    made = run_in_own_loop(generate(source, options, control))
    try:
        print_value(made.status, _render(made, printing.show), json=json)
    finally:
        if made.ended is not None:
            raise made.ended


def _render(made: Generated, show: int) -> Iterator[str]:
    """Yield the run's status, its files, and the first `show` conversations of each arm."""
    yield from render_status(made.status)
    for arm in made.files:
        if arm.arm:
            yield f"arm        {arm.arm}"
        counts = arm.manifest.counts
        yield f"split      {counts.train:,} train, {counts.test:,} test"
        yield f"data       {arm.folder}"
        files = (msgspec.json.decode((arm.folder / file.path).read_bytes()) for file in arm.manifest.files)
        for record in islice(chain.from_iterable(files), show):
            yield from _render_record(record)


def _render_record(record: dict[str, Any]) -> Iterator[str]:
    from edgen.core.registry import part_of
    from edgen.families.base import find_family_of_record, write_values
    from edgen.families.reader import RecordContents, ReportWords

    family = find_family_of_record(record)
    recorded = family.read(msgspec.json.encode(record))
    yield ""
    yield f"{recorded.id}{' (simulated)' if recorded.provenance.simulated else ''}"
    held = [part for key in ("background_info", "scenario") if isinstance(part := record.get(key), dict)]
    written = {key: value for part in held for key, value in part.items()}
    for key, value in (written or write_values(recorded.scenario)).items():
        yield f"  {key}: {_describe_value(value)}"
    for turn in part_of(family, RecordContents).written(recorded.conversation):
        yield f"{turn.role}: {turn.text}"
    probability = recorded.conversation.probability
    if probability is not None or "probability" in record:
        yield f"{part_of(family, ReportWords).probability_words}: {probability}"


def _describe_value(value: Any) -> str:
    """Describe a value of a scenario, followed by the fields of its entry."""
    if not isinstance(value, dict):
        return str(value)
    fields = ", ".join(f"{name}: {said}" for name, said in value.items() if name != "value")
    return f"{value.get('value')} ({fields})" if fields else str(value.get("value"))
