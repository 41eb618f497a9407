"""Imports of edgen's own kinds: `edgen.plugin`, their own folder and third parties, as in plugins."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import edgen.plugin
from tests import ROOT
from tests.source_imports import imports_of

pytestmark = pytest.mark.unit

# Folders that hold kinds alone, each file of which may import the others.
SHARED = ("edgen/evaluation/measures", "edgen/export/formats")
# Names of `edgen.plugin` that a first plugin does not need, by kind.
SUBMODULES = tuple(
    sorted(
        path.stem
        for path in (ROOT / "edgen" / "plugin").glob("*.py")
        if path.stem not in ("__init__", "askers")  # tests/asking/test_added.py has askers of another package
    )
)
# Kinds that `edgen.plugin` names for plugins to build on: importing from there would be a circle.
IN_PLUGIN = ("edgen/families/dialogue.py",)
# Imports that are not public, by file: the start of the imported modules' names.
REMAINING: dict[str, tuple[str, ...]] = {
    # A service with the wire format of another one builds on its provider.
    "edgen/providers/google_generativeai/*": ("edgen.providers.gemini",),
    "edgen/providers/vertex/*": ("edgen.providers.gemini",),
    "edgen/providers/openai_responses/*": ("edgen.providers.openai",),
    "edgen/providers/litellm/*": ("edgen.providers.openai",),
    "edgen/providers/llamacpp/online.py": ("edgen.providers.openai",),
    # The embedded model is a layer: it knows how the engine words prompts and reads replies.
    "edgen/simulator/provider.py": ("edgen.simulator",),
    # A class that `edgen.plugin` names (IN_PLUGIN).
    "edgen/families/dialogue.py": ("edgen.core.values", "edgen.families", "edgen.validation.layout"),
    # Its sentences come from a section of the space file; the scene is the subject of the simulator's talk.
    "edgen/simulator/phrases/section.py": ("edgen.space",),
    "edgen/domains/forum/simulation.py": ("edgen.protocols.simulation", "edgen.space.model"),
    "edgen/evaluation/measures/personas.py": ("edgen.space.model", "edgen.space.phrases"),
    "edgen/domains/education/adherence_simulation.py": ("edgen.simulator.judge",),
    # Commands, Python functions and askers of a domain belong to no kind.
    "edgen/domains/retrieval/signatures.py": ("edgen.execution.progress",),
    "edgen/domains/retrieval/options.py": ("edgen.core.options",),
    "edgen/domains/retrieval/baseline_options.py": ("edgen.asking.options", "edgen.core.options"),
    "edgen/domains/*/*command.py": ("edgen.cli", "edgen.core.options", "edgen.runtime.options"),
    "edgen/domains/guided/machines/functions.py": ("edgen.core", "edgen.planning", "edgen.space"),
    "edgen/domains/retrieval/functions.py": ("edgen.api.objects.arguments", "edgen.runtime"),
    "edgen/domains/retrieval/ranking*.py": (
        "edgen.asking", "edgen.core.digest", "edgen.core.options", "edgen.execution.progress", "edgen.planning",
        "edgen.prompting", "edgen.protocols.parts", "edgen.runtime", "edgen.store.ledger",
    ),
    "edgen/domains/education/adherence*.py": (
        "edgen.asking", "edgen.core.pair", "edgen.evaluation", "edgen.planning", "edgen.prompting",
        "edgen.protocols.parts", "edgen.runtime", "edgen.store.ledger",
    ),
    "edgen/domains/education/measures/adherence.py": ("edgen.asking.call_estimates",),
    # A space file from the data set's files.
    "edgen/domains/education/from_ed.py": ("edgen.core", "edgen.space"),
    # The check whether both sides prefer the same way.
    "edgen/domains/education/layout.py": ("edgen.reading.phrase_kinds",),
    # A section of a space file.
    "edgen/domains/tutoring/exercises/*": ("edgen.prompting", "edgen.space"),
    # Conversations that are labelled while they are made, as annotators label them.
    "edgen/domains/tutoring/*.py": (
        "edgen.config.label_set", "edgen.protocols.labelling", "edgen.protocols.labelling_simulated",
        "edgen.reading.answers.unit_labels",
    ),
    "edgen/protocols/labelling.py": ("edgen.config.label_set", "edgen.protocols", "edgen.reading.answers"),
    # Protocols of judges and writers: their readers have names that collide (two Choice, two Labels).
    "edgen/protocols/oracle.py": ("edgen.config", "edgen.core.pair", "edgen.reading.answers"),
    "edgen/protocols/writing.py": ("edgen.protocols", "edgen.reading.answers"),
    # The format of a run's own shards.
    "edgen/domains/education/export.py": ("edgen.config", "edgen.store.shards", "edgen.validation.schema"),
    # Families of phrases about teaching and learning.
    "edgen/domains/education/keywords.py": ("edgen.reading",),
    "edgen/evaluation/measures/secret_leaks.py": ("edgen.core.registry", "edgen.reading"),
    # Measures whose work the engine has elsewhere as well: layers, pairs, texts.
    "edgen/evaluation/measures/labels.py": ("edgen.config.label_set", "edgen.evaluation", "edgen.stats.clusters"),
    "edgen/evaluation/measures/calibration.py": ("edgen.preferences.render",),
    "edgen/evaluation/measures/diversity.py": ("edgen.evaluation.texts",),
    "edgen/evaluation/measures/duplicates.py": ("edgen.evaluation.texts",),
}  # fmt: skip


def own_folders() -> dict[str, Path]:
    """Return the folder, or the one file, of each of edgen's own kinds, by its path."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    found = {}
    for group, entries in groups.items():
        for target in entries.values() if group != "edgen.askers" else ():  # a part of the engine
            parts = target.partition(":")[0].split(".")
            path = ROOT.joinpath(*parts)
            if parts[1] == "domains":
                path = ROOT.joinpath(*parts[:3])
            elif shared := next((one for one in SHARED if path.is_relative_to(ROOT / one)), None):
                path = ROOT / shared
            elif not path.is_dir():
                path = path.with_suffix(".py")
            found[path.relative_to(ROOT).as_posix()] = path
    return found


def foreign_imports(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield files with each non-public module of edgen that they import from another folder."""
    own = ".".join(folder.relative_to(ROOT).with_suffix("").parts)
    for file in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
        for node in imports_of(file):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            for name in named:
                public = name in ("edgen", own) or name.startswith(("edgen.plugin", f"{own}."))
                if name.split(".")[0] == "edgen" and not public:
                    yield file.relative_to(ROOT).as_posix(), name


def remaining_for(file: str, module: str) -> set[str]:
    """Return the patterns of REMAINING that let a file import a module."""
    return {
        pattern
        for pattern, modules in REMAINING.items()
        if fnmatch(file, pattern) and any(f"{module}.".startswith(f"{one}.") for one in modules)
    }


@pytest.mark.parametrize("path", sorted(own_folders()))
def test_a_kind_imports_edgen_plugin_alone(path: str) -> None:
    assert [
        f"{file}: {module}"
        for file, module in foreign_imports(ROOT / path)
        if not remaining_for(file, module)
    ] == []


def test_what_remains_is_still_imported() -> None:
    """An unused line of REMAINING must be removed. Those of domains may be missing from a copy."""
    found = [one for folder in own_folders().values() for one in foreign_imports(folder)]
    needed = {pattern for file, module in found for pattern in remaining_for(file, module)}
    there = {pattern for pattern in REMAINING if any(ROOT.glob(pattern))}
    assert there - needed == set()


def test_no_kind_imports_from_elsewhere_what_edgen_plugin_has() -> None:
    public = [edgen.plugin, *(importlib.import_module(f"edgen.plugin.{name}") for name in SUBMODULES)]
    missed = []
    for path, folder in own_folders().items():
        if path in IN_PLUGIN:
            continue
        own = ".".join(folder.relative_to(ROOT).with_suffix("").parts)
        for file in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
            for node in imports_of(file):
                named = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
                if not named.startswith("edgen.") or named.startswith(("edgen.plugin", own)):
                    continue
                # `edgen --help` loads these, and edgen.plugin.formats would load the formats.
                if named == "edgen.core.options" and file.name.endswith(("options.py", "command.py")):
                    continue
                assert isinstance(node, ast.ImportFrom)
                home = importlib.import_module(named)
                missed += [
                    f"{path}: {file.name}: {one.name} of {named}"
                    for one in node.names
                    if (found := getattr(home, one.name, None)) is not None
                    and any(
                        one.name in dir(module) and getattr(module, one.name) is found for module in public
                    )
                ]
    assert missed == []


def test_the_example_imports_edgen_plugin_alone() -> None:
    assert list(foreign_imports(ROOT / "examples" / "plugin" / "edgen_example")) == []


def typed_names(name: str) -> set[tuple[str, str]]:
    """Return home and name of each import of edgen's in a file of `edgen.plugin`."""
    return {
        (node.module or "", alias.name)
        for node in imports_of(ROOT / "edgen" / "plugin" / f"{name}.py")
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("edgen.")
        for alias in node.names
    }


def test_every_name_is_there_and_is_typed() -> None:
    assert {(home, name) for name, home in edgen.plugin._HOME_OF.items()} == typed_names("__init__")
    assert all(getattr(edgen.plugin, name) is not None for name in edgen.plugin._HOME_OF)


def test_all_are_imported_by_a_star() -> None:
    taken: dict[str, object] = {}
    exec("from edgen.plugin import *", taken)
    assert taken.keys() >= edgen.plugin._HOME_OF.keys()


def test_the_promise_covers_few_names() -> None:
    """A promised name cannot change: a name that only some of edgen's own kinds need is not promised."""
    assert len(dir(edgen.plugin)) == 63


@pytest.mark.parametrize("name", edgen.plugin._MOVED_TO)
def test_an_import_of_a_name_that_has_moved_says_where_it_is(name: str) -> None:
    with pytest.raises(ImportError, match=f"^{name} has moved: from edgen.plugin.") as raised:
        exec(f"from edgen.plugin import {name}")
    exec(str(raised.value).partition(": ")[2])


@pytest.mark.parametrize("name", SUBMODULES)
def test_every_name_of_a_submodule_is_documented_and_used(name: str) -> None:
    names = {one for _, one in typed_names(name)}
    said = set(re.findall(r"\w+", importlib.import_module(f"edgen.plugin.{name}").__doc__ or ""))
    assert names - said == set()
    used = {
        alias.name
        for folder in own_folders().values()
        for file in ([folder] if folder.is_file() else folder.rglob("*.py"))
        for node in imports_of(file)
        if isinstance(node, ast.ImportFrom) and node.module == f"edgen.plugin.{name}"
        for alias in node.names
    }
    if len([*(ROOT / "edgen" / "domains").glob("*/README.md")]) >= 5:  # a copy without a domain uses fewer
        assert names - used == set(), "names that none of edgen's own kinds uses"


def test_every_name_stands_in_the_documentation_of_the_module() -> None:
    said = edgen.plugin.__doc__ or ""
    assert [name for name in dir(edgen.plugin) if name not in said] == []
