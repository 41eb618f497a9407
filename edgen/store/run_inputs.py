"""Input files of a run: those that its job names, and those next to them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from edgen.core.errors import SpaceError
from edgen.store.run_folder import RunFolder


def inputs_named(job: Mapping[str, Any]) -> set[str]:
    """Return the files that the jobs of a run and its arms name as templates and spaces, and those of their
    backends. For files next to them, see `inputs_beside`."""
    found: set[Any] = set()
    for values in (job, *(job.get("arms") or {}).values()):
        found |= {values.get("space"), values.get("prompt"), *(values.get("prompts") or {}).values()}
        backends = [one for one in (values.get("backends") or {}).values() if isinstance(one, dict)]
        found |= {name for one in backends for name in one.values() if str(name).startswith("inputs/")}
    return {name for name in found if isinstance(name, str)}


def inputs_beside(run: RunFolder, inputs: Iterable[str]) -> set[str]:
    """Return the files next to a run's inputs: schemas of templates, knowledge files and pictures of
    spaces."""
    from edgen.prompting.prompt import schema_file
    from edgen.space import load_space
    from edgen.space.pictures import name_kept_file

    beside = {str(schema_file(Path(name))) for name in inputs if name.endswith(".j2")}
    for space in (Path(name) for name in inputs if name.endswith(".yaml")):
        with contextlib.suppress(SpaceError):  # users of the space report it
            knowledge = load_space(run.path / space).knowledge
            beside |= {str(space.parent / knowledge.file)} if knowledge else set()
            beside.add(str(space.parent / name_kept_file(space.name)))
    return {name for name in beside if (run.path / name).is_file()}
