"""What a scenario holds and a job's templates never say: values that are drawn and shape nothing."""

from __future__ import annotations

from pathlib import Path

from edgen import resources
from edgen.engine.plan import Plan
from edgen.model import ROLES
from edgen.prompting import SCENARIO_VARIABLES

_OF_TOPICS = ("subject", "level")  # only where the space has them


def unused(plan: Plan) -> list[tuple[str, str, str]]:
    """(variable, use, the template's file) of every scenario variable that the template of a use never
    reads. Under selfplay each side answers for its own variables; a closing question for none."""
    had = {name for name in _OF_TOPICS if any(getattr(topic, name) for topic in plan.space.topics)}
    missed = [name for name in _OF_TOPICS if name not in had]
    found = []
    for use, own in _expected(plan).items():
        prompt = plan.prompts[use]
        found += [(name, use, prompt.source) for name in prompt.unused(own) if name not in missed]
    return found


def _expected(plan: Plan) -> dict[str, list[str]]:
    """The variables that a template is expected to read, by its use. The index says nothing to a model."""
    if plan.job.protocol == "oneshot":
        return {"default": [name for name in SCENARIO_VARIABLES if name != "index"]}
    from edgen.protocols.stage import COMMON, SECRETS

    common = [name for name in COMMON if name != "index"]
    return {role.lower(): [*common, *SECRETS[role]] for role in ROLES}


def sentence(variable: str, use: str, source: str) -> str:
    """What a person is told about it."""
    path = Path(source)
    name = path.stem if path.parent == resources.folder("prompts") else source
    side = "" if use == "default" else f" (the {use}'s side)"
    return f"`{variable}` is never used by {name}{side}"
