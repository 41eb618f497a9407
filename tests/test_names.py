"""The names of classes and functions: one name has one meaning, and a function's name says what it does.

Names that edgen promises to its users stay; they are listed here with the reason.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests import ROOT
from tests.source_imports import list_nodes, walk_statements

# Names of two or more public packages, each with the meaning that its users expect.
SHARED_CLASSES = {
    "Conversation": "of a run (edgen), of a plugin (edgen.plugin), of an environment (edgen.env)",
    "ConversationEnv": "the environment of one of two trainers, which look for it in different modules",
    "Job": "as Python users write it (edgen), and as a plugin gets it (edgen.plugin)",
}

# Irregular participles. "cut", "put", "read", "set" and "split" are imperatives, too.
IRREGULAR = frozenset(
    [
        "become",
        "begun",
        "bound",
        "broken",
        "brought",
        "built",
        "caught",
        "chosen",
        "dealt",
        "done",
        "drawn",
        "driven",
        "fed",
        "felt",
        "found",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "left",
        "made",
        "meant",
        "met",
        "paid",
        "said",
        "seen",
        "sent",
        "shown",
        "sold",
        "sought",
        "spent",
        "spoken",
        "stood",
        "sworn",
        "taken",
        "taught",
        "thought",
        "thrown",
        "told",
        "torn",
        "understood",
        "won",
        "worn",
        "written",
    ]
)
# Imperatives that end like a participle.
IMPERATIVES = frozenset(["embed", "exceed", "feed", "heed", "need", "proceed", "seed", "shed"])

# Functions that keep a participle: path, function, reason. `*` is any class or path.
CONTRACT = {
    "accepted": "a plugin's result (Settled)",
    "compared": "what a plugin declares (Measure)",
    "expected": "what a plugin declares (Protocol)",
    "given": "what a plugin declares (BackendConfig)",
    "left_out": "what a plugin declares (FormatOptions)",
    "located": "what a plugin declares (BackendConfig)",
    "noted_job": "what a plugin calls (RunReader)",
    "named": "what a plugin calls (RunReader)",
    "rejected": "a plugin's result (Settled)",
    "shown": "what a plugin declares (Measure)",
    "simulated": "what a plugin declares (Protocol)",
    "simulated_labels": "what a plugin declares (Protocol)",
    "trained": "what a plugin declares (Protocol)",
    "written": "what a plugin declares (Family)",
    "_seen": "what a plugin's conversation calls (Session)",
    "done": "as of a Future, which stands in the same places",
    "begun_arms": "what a user of Python reads (Status)",
    "heard": "public in edgen.env",
    "unified_diff": "the term of the standard library",
    "numbered": "the name of a fault that users read",
    "bulleted": "the name of a fault that users read",
    "named_roles": "the name of a fault that users read",
}


# Words with which a function's name may begin: imperatives and predicates, one a line, in alphabetical order.
VERBS = frozenset((ROOT / "tests" / "verbs.txt").read_text(encoding="utf-8").split())

# What factories, conversions and handlers begin with: from_text, with_marker, on_signal.
PREFIXES = frozenset(["as", "from", "of", "on", "to", "with", "without"])


class Nouns(NamedTuple):
    """Functions whose names do not begin with a verb and are kept."""

    reason: str
    below: str  # the path, or the beginning of it, of the files with such names
    names: str  # with blanks between them; "" is all functions of the file


NOUNS = [
    Nouns(
        "statistics named by their term",
        "edgen/stats/",
        "agreement alpha alphas alpha_of bootstrap calibration derivatives difference_of_means fisher fleiss holm"
        " incomplete_beta influence interval jackknife kappas krippendorff masi mean_above mid_shares nominal"
        " permutation_test placements ratios sigmoid slope spearman strengths studentise superiority"
        " t95 wilson",
    ),
    Nouns("the names of faults that users read", "edgen/simulator/layout_defects.py", ""),
    Nouns("parts of schemas, read as the schema that they make", "edgen/core/forms.py", ""),
    Nouns("the function of a command", "edgen/", "command"),
    Nouns("the name of the method in Python's executors", "edgen/core/plugins/", "shutdown"),
    Nouns("the beginning of a process", "edgen/", "main"),
    Nouns("what a user of Python calls, and the options of it", "edgen/api/", "candidates pairs stats"),
    Nouns("what a user of Python calls, and the options of it", "edgen/domains/retrieval/", "baseline"),
    Nouns("what a user of Python calls", "edgen/api/objects/", "conversations interrupts source"),
    Nouns(
        "what a user of Python calls",
        "edgen/domains/tutoring/measures/best_of_others.py",
        "reference_overlap",
    ),
    Nouns("what a user of Python reads", "edgen/runtime/status.py", "begun_arms"),
    Nouns(
        "what a trainer calls, or a user of edgen.env",
        "edgen/env/",
        "address conversation first_prompt heard reward rollout rows step step_async tool_rows",
    ),
    Nouns("the JSON body of a call, by HTTP's word", "edgen/providers/", "body"),
    Nouns("what a judge's protocol declares", "edgen/protocols/", "template"),
    Nouns("drawn like the item of a list", "edgen/space/sampling.py", "scenario"),
    Nouns("filters of templates", "edgen/web/rendering.py", "dollars flow"),
    Nouns("a function of templates", "edgen/prompting/prompt.py", "fraction"),
    Nouns("the term of the standard library", "edgen/prompting/diff.py", "unified_diff"),
    Nouns(
        "as in aiohttp and asyncio", "edgen/execution/", "connection_lost connection_made data_received done"
    ),
    Nouns(
        "what a library calls",
        "edgen/",
        "async_auth_flow getattr getitem reducer_override repr_html setdefault",
    ),
    Nouns("arithmetic of values", "edgen/", "less minus plus times"),
    Nouns("assertions", "edgen/testing/check.py", "that value"),
    Nouns("what a format declares (Format)", "edgen/", "rows"),
    Nouns(
        "the names of edgen.plugin",
        "edgen/",
        "figure_kinds part_of scenario_variables settings_of template_variables",
    ),
    Nouns(
        "the names of edgen.plugin's submodules",
        "edgen/",
        "arrow_schema base_address body_of cache_file cells_of choice_form columns columns_of"
        " conversation_variables defaults_of evidence_of excerpt family_of flow hash64 http_key_request"
        " interval_of kind_of_status labels_of learner lines_of loops memory_size new_folder object_in option"
        " percent pictures_in quantity readable_name refusal_without_reason role_of roles_of row rows_from seconds"
        " sentence_of_arm series_colour shade_of shingles_of system_certificates texts_in texts_of"
        " transcript_of turns_left unread value_problem words words_without_marks",
    ),
    Nouns(
        "the methods of edgen.plugin's classes",
        "edgen/",
        "about address alias annotator_ledgers arm arms askers backend by_people candidate candidates"
        " caveats choices_problem closing column_reader compared content conversation conversations cost current"
        " dimensions drawings example examples expected field figures first_prompt foreign form forms given groups"
        " header_requests identifier in_order job_of key_after key_request leaves ledgers left_out line lines"
        " located logprobs_problem meaning messages models more_findings nearest_price notes opening pairs partitions"
        " picture_problem picture_tokens pictures positions probability probability_by problems prompt_in question"
        " random reading request responses result results role_of role_problems roles rollout_ledgers room rounds"
        " scenario_of scenarios scene scenes schema_of schema_problem scores session simulated simulated_labels"
        " slots speaker speakers stage state sums tables_of templates tiles trained turns user_first values variant"
        " verdict vocabulary writer_ledgers writers written",
    ),
]


# Words that no class, function, parameter or field has in its name, with what to write in their place:
# prepositions, and metaphors that a reader has to guess.
BANNED = {
    "alike": "similar, equal, or what is the same",
    "behind": "after, or what it is",
    "beside": "what it is: files, observers, additional values",
    "cue": "keyword",
    "cues": "keywords",
    "door": "transport",
    "hurry": "stop_waiting",
    "knocks": "failed connections",
    "lend": "register_temporarily",
    "parting": "divergence",
    "purse": "lease",
    "struck": "the fault that was chosen",
    "twin": "sibling, or duplicate",
    "twins": "siblings, or duplicates",
}
# Names with such a word that stay: path and name, with the reason.
BANNED_BUT_KEPT = {
    ("edgen/export/evidence.py", "alike"): "a key of credit_figures.json",
    ("edgen/reading/similar_texts.py", "ALIKE"): "what a plugin imports (edgen.plugin)",
    ("edgen/reading/similar_texts.py", "are_alike"): "what a plugin calls (edgen.plugin)",
    ("edgen/reading/text/markup.py", "_CUE"): "the term of WebVTT",
}


class Definition(NamedTuple):
    """A class or function of a source file."""

    name: str
    line: int
    is_class: bool
    is_attribute: bool  # read like one, so that its name may be an adjective


def read_definitions(source: str) -> list[Definition]:
    """Return all classes and functions of a source text, also those within others."""
    return [
        Definition(
            node.name,
            node.lineno,
            isinstance(node, ast.ClassDef),
            not isinstance(node, ast.ClassDef) and _is_attribute(node),
        )
        for node in walk_statements(ast.parse(source))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@cache
def _sources() -> dict[str, list[Definition]]:
    return {
        path.relative_to(ROOT).as_posix(): read_definitions(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "edgen").rglob("*.py"))
    }


def find_shared_classes(sources: dict[str, list[Definition]]) -> dict[str, set[str]]:
    """Return the public class names that stand in several files, with these."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for path, definitions in sources.items():
        for one in definitions:
            if one.is_class and not one.name.startswith("_"):
                files[one.name].add(path)
    return {name: where for name, where in files.items() if len(where) > 1}


def is_participle(name: str) -> bool:
    """Return whether a function's name begins with a participle."""
    word = name.strip("_").split("_")[0]
    return word in IRREGULAR or (word.endswith("ed") and word not in IMPERATIVES)


def _is_attribute(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is read like an attribute, whose name may be an adjective."""
    decorators = [ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list]
    return any(one in ("property", "cached_property", "setter") for one in decorators)


def find_participles(sources: dict[str, list[Definition]]) -> Iterator[str]:
    """Yield the functions whose names begin with a participle, as path:line name."""
    for path, definitions in sources.items():
        for one in definitions:
            known = one.is_class or one.name in CONTRACT or one.is_attribute
            if is_participle(one.name) and not known:
                yield f"{path}:{one.line} {one.name}"


def is_noun_that_stays(path: str, name: str) -> bool:
    """Return whether a function of a file is one of those that need no verb."""
    bare = name.strip("_")
    if name in CONTRACT:
        return True
    return any(
        path.startswith(kept.below) and (not kept.names or bare in kept.names.split()) for kept in NOUNS
    )


def find_nouns(sources: dict[str, list[Definition]]) -> Iterator[str]:
    """Yield the functions whose names begin with no verb, as path:line name."""
    for path, definitions in sources.items():
        for one in definitions:
            word = one.name.strip("_").split("_")[0]
            known = one.is_class or one.is_attribute or one.name.startswith("__") or word in VERBS | PREFIXES
            if not known and not is_noun_that_stays(path, one.name):
                yield f"{path}:{one.line} {one.name}"


def list_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of the classes, functions, parameters, annotated fields and global names of a
    source text."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from ((one.lineno, one.id) for one in node.targets if isinstance(one, ast.Name))
    for node in list_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.lineno, node.target.id


def find_banned(path: str, source: str) -> Iterator[str]:
    """Yield the names with a banned word, as path:line name."""
    for line, name in list_names(source):
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
        if BANNED.keys() & {word.lower() for word in words} and (path, name) not in BANNED_BUT_KEPT:
            yield f"{path}:{line} {name}"


def test_one_class_name_has_one_meaning() -> None:
    found = find_shared_classes(_sources())
    assert {name: sorted(where) for name, where in found.items() if name not in SHARED_CLASSES} == {}


def test_functions_do_not_begin_with_a_participle() -> None:
    assert list(find_participles(_sources())) == []


def test_names_have_no_banned_words() -> None:
    found = [
        one
        for path in sorted((ROOT / "edgen").rglob("*.py"))
        if not path.is_relative_to(ROOT / "edgen" / "reading" / "learned")
        for one in find_banned(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert not found, "Write what BANNED has in place of a word:\n" + "\n".join(found)


def test_functions_begin_with_a_verb() -> None:
    found = list(find_nouns(_sources()))
    assert not found, (
        "These functions begin with no verb: say what they do, as in find_job or render_rows. A verb that is missing"
        " goes into tests/verbs.txt; a name that users or plugins rely on into NOUNS, with the reason:\n"
        + "\n".join(found)
    )


def test_verbs_are_sorted() -> None:
    lines = (ROOT / "tests" / "verbs.txt").read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines))


def _is_missing(domain: re.Match[str] | None) -> bool:
    """Return whether this is a copy of the tree without the domain (.ci/without-domain)."""
    return domain is not None and not (ROOT / domain[0] / "__init__.py").exists()


@pytest.mark.parametrize(
    "kept",
    [kept for kept in NOUNS if not _is_missing(re.match(r"edgen/domains/\w+/", kept.below))],
    ids=lambda kept: kept.reason,
)
def test_no_noun_is_left_over(kept: Nouns) -> None:
    below = [
        (path, one) for path, listed in _sources().items() if path.startswith(kept.below) for one in listed
    ]
    there = {one.name.strip("_") for _, one in below if not one.is_class and not one.is_attribute}
    assert there
    assert set(kept.names.split()) - there == set()


@pytest.mark.parametrize("names", [SHARED_CLASSES, CONTRACT], ids=["classes", "functions"])
def test_no_exception_is_left_over(names: dict[str, str]) -> None:
    there = {one.name for definitions in _sources().values() for one in definitions}
    assert names.keys() - there == set()


def test_planted_names_are_found() -> None:
    banned = "class PurseBook:\n    twins: int\n\n    def write_beside(self, behind): ...\n"
    assert [one.split()[1] for one in find_banned("a.py", banned)] == [
        "PurseBook",
        "twins",
        "write_beside",
        "behind",
    ]
    text = "class Thing: ...\n\ndef _told(): ...\n\ndef feed(): ...\n\ndef list_kept(): ...\n"
    planted = {name: read_definitions(text) for name in ("a.py", "b.py")}
    assert find_shared_classes(planted) == {"Thing": {"a.py", "b.py"}}
    assert list(find_participles(planted)) == ["a.py:3 _told", "b.py:3 _told"]
    assert list(find_nouns(planted)) == ["a.py:3 _told", "b.py:3 _told"]
    assert list(find_nouns({"a.py": read_definitions("def job_of(): ...\n\ndef find_job(): ...\n")})) == [
        "a.py:1 job_of"
    ]
