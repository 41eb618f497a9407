"""The import contracts name every module: a forgotten one would have no rules."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter

from edgen.core.space_layouts import list_layouts
from tests import ROOT
from tests.source_imports import imports_of, list_nodes


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
        "jsonschema": {"validation", "prompting.answer_schema", "simulator.schemas.structured"},
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
    """Return the home of each name that `edgen.plugin` and its submodules have, by module and name."""
    found = {}
    for path in (ROOT / "edgen" / "plugin").glob("*.py"):
        name = "edgen.plugin" if path.stem == "__init__" else f"edgen.plugin.{path.stem}"
        for node in imports_of(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("edgen."):
                found |= {(name, one.name): node.module or "" for one in node.names}
    return found


def imports_of_each() -> dict[str, set[str]]:
    """Return the modules of edgen that each module imports, for types alone as well.

    A name imported from `edgen.plugin` counts as an import of its home.
    """
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / "edgen").rglob("*.py")
    }
    places = {name.removesuffix(".__init__"): path for name, path in files.items()}
    found: dict[str, set[str]] = {name: set() for name in places}
    homes = homes_of_plugin_names()
    for name, path in places.items():
        if name.startswith("edgen.plugin"):  # a list of names, each loaded on use
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
    """The contract ignores the imports of `edgen.plugin`, so imports from it are checked here."""
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


# Names of the domains' folders, and of their own data sets, tools and things.
DOMAINS = {path.parent.name for path in (ROOT / "edgen" / "domains").glob("*/__init__.py")}
THEIRS = {
    "msdialog", "dstc", "dstc7", "cima", "crwiz", "bm25s", "wizards?", "exercises?", "tutees?",
    r"state machines?", r"machine\.yaml", "machineerror",
}  # fmt: skip
# The data set whose layout, template and space are a job's defaults, and the class that programs import.
DEFAULTS = r"education[\W_]+dialogue|(?:sync)?educationenv"
# Words with another meaning, by file.
OTHER_THINGS = {
    "edgen/reading/speaker_patterns.py": "words for speakers: tutee",
    "edgen/reading/phrase_kinds.py": "words of teachers and students: guided, tutoring",
    "edgen/simulator/phrases/phrases.txt": "words of teachers and students: exercises",
    "edgen/simulator/service/gemini_request.py": "a service's field `retrieval`",
}


def test_the_engine_names_no_domain() -> None:
    """No code, comment, message or data of the engine names one, so that domains can be deleted."""
    word = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(DOMAINS | THEIRS))})(?![a-z])")
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "edgen").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in ("", ".pyc") or name.startswith("edgen/domains/"):
            continue
        text = re.sub(DEFAULTS, "", path.read_text(encoding="utf-8").lower())
        if named := {*word.findall(text)}:
            found[name] = named
    # In a copy of the tree without some domains, words of these are not searched.
    assert found.keys() - OTHER_THINGS == set(), found


# Where the engine names a dimension, a field, a group or a role that a layout of a domain has.
OF_LAYOUTS = {
    "core/values": "the roles of a space that names none",
    "evaluation/measures/split_leakage": "keys of its JSON: topic, persona",
    "protocols/selfplay": "the shipped job of `edgen init`: its templates teacher.j2, student.j2",
    "space/phrases": "nouns for people in names of dimensions",
}
# Folders of language: wordings of lessons by people and models, in any space, and the talk of the embedded
# model.
OF_LANGUAGE = ("reading", "simulator")


def test_the_engine_names_no_dimension_of_a_layout() -> None:
    """A layout declares its special dimensions, so a space of another domain works the same way."""
    names = set()
    for layout in list_layouts():
        names |= {*layout.lists, *layout.lists.values(), *layout.fields, *layout.groups, *layout.phrases}
        names |= {*layout.roles, *map(str.lower, layout.roles)}
    found = {module for module, _ in engine_texts(names)}
    language = {module for module in found if module.partition("/")[0] in OF_LANGUAGE}
    assert found - language == OF_LAYOUTS.keys()


def engine_texts(names: set[str]) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the modules of the engine with the constants in them that are one of these texts."""
    folder, quoted = ROOT / "edgen", find_quoted(names)
    for path in sorted(folder.rglob("*.py")):
        if not path.is_relative_to(folder / "domains") and quoted(text := path.read_text(encoding="utf-8")):
            for node in list_nodes(ast.parse(text)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names:
                    yield path.relative_to(folder).with_suffix("").as_posix(), node


def find_quoted(names: set[str]) -> Callable[[str], object]:
    """Return a search for any of these names in quotes: most files have none, and parsing takes seconds."""
    return re.compile(rf"""(["'])(?:{"|".join(map(re.escape, sorted(names)))})\1""").search


# Names of kinds that are also other things: values of keys, words of texts, sources of labels.
OTHER_MEANINGS = {
    "oracle", "probability", "human",  # sources of a label (`edgen.core.pair.Source`)
    "labels", "actions",  # keys of jobs and records, and options of exports
    "chat", "dialogue", "score",  # words in replies
    "function",  # a kind of entry points
}  # fmt: skip
OTHER_TABLES = {"edgen/providers/litellm/services.py": "litellm's own names of services"}
# Expressions whose comparison with a kind's name is forbidden: those that end like this.
OF_A_KIND = re.compile(r"(?:protocol|family|format_?|measure|provider|reader|\.name|\.type|\.tag)\Z")


def test_no_code_compares_names_of_kinds() -> None:
    """Facts about a kind are its attributes or methods, so a plugin's object is treated like edgen's own."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    names = {name for entries in groups.values() for name in entries}
    found, quoted = [], find_quoted(names)
    for path in sorted((ROOT / "edgen").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("edgen/domains/") or name in OTHER_TABLES:
            continue
        if not quoted(text := path.read_text(encoding="utf-8")):
            continue
        tree = ast.parse(text)
        tables = tables_of(tree)
        for node in list_nodes(tree):
            # A name of the module stands for its set or table.
            sides = [
                tables.get(one.id, one) if isinstance(one, ast.Name) else one for one in compared_by(node)
            ]
            literals = {text for side in sides for text in literal_texts(side) if text in names}
            about = (ast.unparse(side) for side in sides if not [*literal_texts(side)])
            if literals - OTHER_MEANINGS or (literals and any(map(OF_A_KIND.search, about))):
                found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


def tables_of(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the sets, lists and mappings that a module writes out, by name."""
    found = {}
    for one in tree.body:
        if isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None:
            value = one.value.args[0] if isinstance(one.value, ast.Call) and one.value.args else one.value
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            if isinstance(value, ast.Tuple | ast.List | ast.Set | ast.Dict):
                found |= {target.id: value for target in targets if isinstance(target, ast.Name)}
    return found


def compared_by(node: ast.AST) -> list[ast.expr]:
    """Return the sides of a comparison, of a case, or of a look-up in a table that is written there."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Match):
        values = [
            one.value for case in node.cases for one in ast.walk(case) if isinstance(one, ast.MatchValue)
        ]
        return [node.subject, *values]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict | ast.Name):
        return [node.value]
    return []


def literal_texts(side: ast.expr) -> Iterator[str]:
    """Yield the texts that a side of a comparison is, or contains."""
    listed = side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
    if isinstance(side, ast.Dict):
        listed = [key for key in side.keys if key is not None]
    for one in listed:
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def test_tests_import_no_other_domains_tests() -> None:
    """A domain's tests belong to its folder: without it, all other tests are still collected and run."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.is_relative_to(
            ROOT / "tests" / "rl" / "apart"
        ):  # the sources' own code, which needs all domains
            continue
        if ".domains." not in path.read_text("utf-8"):  # parsing all of them takes seconds
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
