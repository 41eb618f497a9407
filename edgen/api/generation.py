"""Generate a job's run: its arms in this process, or partitions of its scenarios in several."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from edgen.core.errors import UsageError
from edgen.generation.arms import Generated, find_folder, make_arms, plan_arms
from edgen.generation.options import GenerateOptions
from edgen.generation.partitions import make_partitions
from edgen.planning.load import JobSource
from edgen.runtime.control import Control


async def generate(source: JobSource, options: GenerateOptions, control: Control) -> Generated:
    """Make the conversations of a job, and the files of what was accepted.

    What ends the work once something was asked is in the result; what is wrong before that is raised.
    """
    if options.write_only is not None and options.via != "batch":
        raise UsageError("--write-only writes batch files; it goes with --via batch.")
    if options.write_only is not None and options.write_only.exists() and not options.write_only.is_dir():
        raise UsageError(
            f"--write-only {options.write_only}: this is not a folder; name one for the request files."
        )
    source, plans = plan_arms(source, options, control)
    folder = find_folder(source.job, options)
    if not (options.partitions or source.job.partitions or folder.partitions_folder.exists()):
        return await make_arms(source, plans, options, control)
    if options.partitions:
        source = source._replace(job=msgspec.structs.replace(source.job, partitions=options.partitions))
    made = await make_partitions(source, options, folder, control)
    generated = await make_arms(
        source, plans, msgspec.structs.replace(options, on="here", workers=None), control
    )
    return replace(generated, status=generated.status.with_calls_now({"": made})) if made else generated
