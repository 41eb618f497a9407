"""`edgen space expand`: a model is asked for more values, and a new file holds the old and the new ones."""

from __future__ import annotations

from edgen.cli.options import expand as e
from edgen.cli.options.common import JsonOption, SetOption, SpaceArgument, TrustOption, read_overrides
from edgen.cli.output import print_value


def command(
    space: SpaceArgument,
    dimension: e.DimensionOption,
    count: e.NewOption,
    job: e.AskedOption = None,
    prompt: e.PromptOption = "space_expand",
    output: e.OutOption = None,
    set_: SetOption = None,
    trust_host: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Ask a model for more values of one list, and write a new space file with the old and the new ones.

    Values that are nearly the same as one that is there, or as one another, are dropped. The old file is
    never changed, and none is overwritten. Stopped and started again, it asks nothing twice: every answer is in
    OUT.db, which stays beside OUT, as does a hidden lock file that may be deleted when nothing runs.

    Example: edgen space expand education_dialogue --dimension topics --count 200 --job job.yaml
    """
    from edgen.api.spaces.growth import GrowthOptions, grow_space
    from edgen.cli.control import make_control
    from edgen.cli.render.space import render_grown

    control, overrides = make_control(trust_host=trust_host), read_overrides(set_)
    options = GrowthOptions(
        dimension=dimension, count=count, job=job, prompt=prompt, output=output, overrides=overrides
    )
    made = grow_space(space, options, control)
    print_value(made, render_grown(made), json=json)
    made.require_all()
