"""The import contracts name every module there is: one that is forgotten is held to nothing."""

from __future__ import annotations

import ast
import re
import tomllib
from graphlib import TopologicalSorter

from tests import ROOT
from tests.source_imports import imports_of


def modules() -> set[str]:
    found = {path.stem for path in (ROOT / "edgen").glob("*.py")} - {"__init__"}
    return found | {path.parent.name for path in (ROOT / "edgen").glob("*/__init__.py")}


def test_every_module_has_its_layer_and_every_library_one_home() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers, *homes = settings["contracts"]
    assert {name.strip() for layer in layers["layers"] for name in layer.split("|")} == modules()
    allowed = {
        contract["forbidden_modules"][0]: {
            rule.split(" -> ")[0].removeprefix("edgen.").removesuffix(".**")
            for rule in contract["ignore_imports"]
        }
        for contract in homes
        if "forbidden_modules" in contract
    }
    assert allowed == {
        "aiohttp": {"providers", "simulator", "env.verifiers", "web"},
        "jinja2": {"prompting", "report", "web"},
        "jsonschema": {"validation", "prompting.prompt", "simulator.structured"},
        "matplotlib": {"report"},
        "numpy": {"stats", "evaluation", "preferences", "report", "domains"},
        "bm25s": {"domains.retrieval"},
        "pyarrow": {"export", "families"},
        "rensa": {"evaluation"},
        "bert_score": {"evaluation"},
        "sqlite3": {"store"},
        "tenacity": {"execution"},
        "bpe_openai": {"cost"},
        "xllamacpp": {"providers.llamacpp"},
        "ray": {"execution.cluster"},
    }


def homes_of_plugin_names() -> dict[tuple[str, str], str]:
    """The home of each name that `edgen.plugin` and its submodules have, by module and name."""
    found = {}
    for path in (ROOT / "edgen" / "plugin").glob("*.py"):
        name = "edgen.plugin" if path.stem == "__init__" else f"edgen.plugin.{path.stem}"
        for node in imports_of(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("edgen."):
                found |= {(name, one.name): node.module or "" for one in node.names}
    return found


def imports_of_each() -> dict[str, set[str]]:
    """The modules of edgen that each module imports, for types alone as well; those of names that it imports
    from `edgen.plugin` are their homes."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / "edgen").rglob("*.py")
    }
    places = {name.removesuffix(".__init__"): path for name, path in files.items()}
    found: dict[str, set[str]] = {name: set() for name in places}
    homes = homes_of_plugin_names()
    for name, path in places.items():
        if name.startswith("edgen.plugin"):  # a list of names, each loaded when it is used
            continue
        for node in imports_of(path):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                named = {f"{node.module}.{one.name}" for one in node.names}
                found[name] |= (named & places.keys()) or ({node.module} & places.keys())
                found[name] |= {homes.get((node.module, one.name), name) for one in node.names}
    return {name: imported - {name} for name, imported in found.items()}


def test_no_modules_import_one_another_in_a_circle() -> None:
    TopologicalSorter(imports_of_each()).prepare()  # raises CycleError, which names the circle


def test_no_import_points_up_through_edgen_plugin() -> None:
    """The contract ignores what `edgen.plugin` imports, so what others import from it is looked at here."""
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    rank = {name.strip(): number for number, layer in enumerate(layers) for name in layer.split("|")}

    def level(module: str) -> int:
        return rank[[*module.split("."), "__main__"][1]]

    up = [
        f"{name} -> {home}"
        for name, imported in imports_of_each().items()
        for home in imported
        if "." in name and "." in home and not home.startswith("edgen.plugin") and level(home) < level(name)
    ]
    assert sorted(up) == []


# Names of the domains' folders, and of what is theirs alone: data sets, tools, things.
DOMAINS = {path.parent.name for path in (ROOT / "edgen" / "domains").glob("*/__init__.py")}
THEIRS = {
    "msdialog", "dstc", "dstc7", "cima", "crwiz", "bm25s", "wizards?", "exercises?", "tutees?",
    r"state machines?", r"machine\.yaml", "machineerror",
}  # fmt: skip
# The data set whose layout, template and space a job has that names none, and the class that programs import.
DEFAULTS = r"education[\W_]+dialogue|(?:sync)?educationenv"
# Words of other things, by file.
OTHER_THINGS = {
    "edgen/reading/other_speaker.py": "words for speakers: tutee",
    "edgen/reading/phrase_kinds.py": "words of teachers and students: guided, tutoring",
    "edgen/simulator/phrases.txt": "words of teachers and students: exercises",
    "edgen/simulator/service/gemini_fields.py": "a service's field `retrieval`",
}


def test_the_engine_names_no_domain() -> None:
    """No code, comment, message or data of the engine, so that a domain can be deleted or replaced."""
    word = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(DOMAINS | THEIRS))})(?![a-z])")
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "edgen").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in ("", ".pyc") or name.startswith("edgen/domains/"):
            continue
        text = re.sub(DEFAULTS, "", path.read_text(encoding="utf-8").lower())
        if named := {*word.findall(text)}:
            found[name] = named
    # In a copy of the tree without some domains, words of these are not looked for.
    assert found.keys() - OTHER_THINGS == set(), found


# Modules that decide by the dimensions of Education Dialogue, the data set that a job has which names none. Other
# defaults for its spaces are attributes of its family (`edgen.plugin.KindDefaults`).
OF_ITS_DIMENSIONS = {
    "api/projects", "api/spaces/from_ed", "evaluation/measures/coverage_count", "export/conversation_rows",
    "planning/sizes", "planning/unused_variables", "plugin/protocols", "protocols/selfplay", "protocols/stage",
    "space/dump", "space/model", "space/parse", "space/scene", "space/splits",
}  # fmt: skip


def test_few_modules_decide_by_the_dimensions_of_education_dialogue() -> None:
    names = re.compile(r"\b(DIMENSIONS|TOPIC_FIELDS|has_five_dimensions|five_list_scenario|is_five_lists)\b")
    folder = ROOT / "edgen"
    found = {
        path.relative_to(folder).with_suffix("").as_posix()
        for path in folder.rglob("*.py")
        if not path.is_relative_to(folder / "domains") and names.search(path.read_text(encoding="utf-8"))
    }
    assert found == OF_ITS_DIMENSIONS


def test_tests_import_no_other_domains_tests() -> None:
    """A domain's tests go with its folder: without it, all other tests are still collected and run."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.is_relative_to(
            ROOT / "tests" / "rl" / "apart"
        ):  # the sources' own code, which needs all domains
            continue
        if ".domains." not in path.read_text("utf-8"):  # to parse them all takes seconds
            continue
        parts = path.relative_to(ROOT).with_suffix("").parts
        for node in imports_of(path):
            named = (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
            )
            for _, domains, domain, *_ in (name.split(".") for name in named if name.count(".") >= 2):
                if domains == "domains" and domain != "education" and parts[:3] != ("tests", domains, domain):
                    found.setdefault("/".join(parts), set()).add(domain)
    assert found == {}
