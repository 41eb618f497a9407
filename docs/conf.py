"""The documentation site: the pages of this folder, and the reference out of edgen's docstrings.

make docs-site     builds it in site/; a warning is an error
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from edgen import __version__  # noqa: E402

project = "edgen"
author = "edgen"
copyright = "edgen, Apache-2.0"  # noqa: A001
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_title = f"edgen {__version__}"
smartquotes_action = "qe"  # no dashes: `--set` is an option
html_show_copyright = False
myst_heading_anchors = 3
suppress_warnings = [
    "myst.header",
    "misc.highlighting_failure",
]  # CHANGELOG starts below its title; `…` in JSON
default_role = "code"  # docstrings write `code` as Markdown does
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
# Some functions take their options from structs, and have no defaults in their source.
autodoc_preserve_defaults = False
python_use_unqualified_type_names = True

# The reference describes the names of `import edgen` and those of plugins.
KINDS = {
    "Providers": (
        "edgen.providers.base",
        [
            "Provider",
            "Key",
            "Link",
            "RequestFeatures",
            "PricesAndTokens",
            "ServiceKeys",
            "BatchAnswers",
            "LocalCalls",
        ],
    ),
    "Protocols": ("edgen.protocols.base", ["Protocol", "ConversationProtocol", "Simulation"]),
    "Protocols: optional parts": (
        "edgen.protocols.base",
        [
            "SimulatedAnswers",
            "RolesAndSettings",
            "SelfDescription",
            "AnswerForms",
            "SharedPreparation",
            "TurnByTurn",
        ],
    ),
    "Families": ("edgen.families.base", ["Family", "Recorded", "Provenance", "FiledRecord"]),
    "Families: optional parts": (
        "edgen.families.reader",
        [
            "LayoutChecks",
            "RecordContents",
            "ReportWords",
            "KindDefaults",
            "TextLayout",
        ],
    ),
    "Formats": ("edgen.export.format", ["Format", "FormatCard", "FormatLayout"]),
    "Measures": ("edgen.evaluation.measure", ["Measure"]),
    "Measures: optional parts": (
        "edgen.evaluation.measure",
        [
            "OwnCount",
            "NeedsDataSet",
            "OwnTexts",
            "OwnComparisons",
            "JudgeAnswers",
        ],
    ),
    "Measures: counts": ("edgen.evaluation.shared", ["Observer", "Count", "Shared"]),
    "Measures: the report": ("edgen.evaluation.panels", ["Panel", "TablePanel", "Sentence", "ArmResult"]),
    "Measures: aggregates": (
        "edgen.evaluation.aggregates",
        ["Total", "Share", "Mean", "Histogram", "Tally", "Crossed", "Examples", "ByKey", "Aggregate"],
    ),
    "What they are handed": (
        "edgen.core.values",
        ["Scenario", "Message", "Request", "Reply", "Turn", "Conversation", "Rejection"],
    ),
    "Checks": (
        "edgen.testing",
        [
            "check_provider",
            "check_protocol",
            "check_family",
            "check_format",
            "check_measure",
            "ConformanceError",
        ],
    ),
    "The registry": ("edgen.core.registry", ["find", "list_names", "list_plugins", "Plugin", "PluginError"]),
}


ENVIRONMENTS = {
    "edgen.env": [
        "EducationEnv", "SyncEducationEnv", "Conversation", "SyncConversation", "Step", "heard", "Reward", "Ended", "Scored",
        "ProbabilityReward", "OracleReward", "RubricReward", "Criterion",
    ],
    "edgen.env.trl": ["TrlRollouts", "ToolEnvironment", "tool_rows"],
}  # fmt: skip


def _members(module: str, names: list[str], option: str = "") -> str:
    lines = []
    for name in names:
        value = getattr(importlib.import_module(module), name)
        directive = "autoclass" if isinstance(value, type) else "autofunction"
        lines.append(f".. {directive}:: {module}.{name}\n{option if directive == 'autoclass' else ''}")
    return "```{eval-rst}\n" + "\n".join(lines) + "```\n"


def _of_edgen() -> str:
    edgen = importlib.import_module("edgen")
    names = [name for name in dir(edgen) if callable(getattr(edgen, name))]
    return _members("edgen", names)


def _errors() -> str:
    errors = importlib.import_module("edgen.core.errors")
    names = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    return _members("edgen.core.errors", names)


def _fill(_app: Any, _page: str, source: list[str]) -> None:
    """Put the reference at its marks, and make names of files of links out of this folder."""
    text = source[0]
    if "<!-- reference: edgen -->" in text:
        text = text.replace("<!-- reference: edgen -->", _of_edgen())
    if "<!-- reference: errors -->" in text:
        text = text.replace("<!-- reference: errors -->", _errors())
    if "<!-- reference: environments -->" in text:
        shown = [
            _members(*what, option="   :inherited-members: tuple,object\n") for what in ENVIRONMENTS.items()
        ]
        text = text.replace("<!-- reference: environments -->", "\n".join(shown))
    if "<!-- reference: kinds -->" in text:
        sections = [f"### {title}\n\n{_members(*what)}" for title, what in KINDS.items()]
        text = text.replace("<!-- reference: kinds -->", "\n".join(sections))
    source[0] = _link(text)


_PAGES = {
    "README.md": "index.md",
    **{f"{name.upper()}.md": f"{name}.md" for name in ("changelog", "architecture")},
}


def _link(text: str) -> str:
    """Links as the site has them: README is its first page, and what is no page is named and not linked."""
    text = re.sub(r"\]\(docs/", "](", text)
    text = re.sub(
        r"\]\((?:\.\./)?(README|CHANGELOG|ARCHITECTURE)\.md",
        lambda m: f"]({_PAGES[m[1] + '.md']}",
        text,
    )
    return re.sub(
        r"\[([^\]]+)\]\((?:\.\./)?(?:jobs|validators|edgen|bench|prompts|preference_space|examples|LICENSE|CONTRIBUTING)[^)]*\)",
        r"`\1`",
        text,
    )


def setup(app: Any) -> None:
    app.connect("source-read", _fill)
    app.connect("include-read", lambda _app, _path, _docname, source: source.__setitem__(0, _link(source[0])))
