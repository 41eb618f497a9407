"""The 63 names for packages that add a provider, a protocol, a family, an export format or a measure.

    from edgen.plugin import Measure, Sample, Words

**Promise.** These names stay, with their arguments and results. Before a release changes one of them, the old
form works for two minor releases with a warning, and CHANGELOG.md states the replacement. New names, new
optional parameters and new optional methods may come in any release. All else in edgen may change in any
release: a plugin that imports another module of edgen works, and `edgen list plugins` notes it.
`edgen.testing` has a check for each kind.

Values that pass between edgen and a plugin
    Scenario, Turn, Conversation: a draw from a space; a turn; a finished conversation.
    Message, Request, Reply, Address: one model call. Rejection: an unusable answer, with a reason, such as
        "empty" (docs/protocols.md lists them).
    CallError, FailureKind: a call that failed.
    Job, settings_of: the job, and the settings that it has for its protocol. Space: dimensions and roles.
A provider
    Provider, Backend, BackendConfig, Key, Link.
    Optional parts: RequestFeatures, BatchAnswers, LocalCalls.
A protocol
    ConversationProtocol, Template, Prompting, Rules, Question, ask, ExpectedCall, AnswerKind, Simulation.
    Optional parts: SimulatedAnswers, SelfDescription, RolesAndSettings.
    scenario_variables, template_variables: variables of templates. read: the conversation in a reply.
A family
    Family, Recorded, Provenance. Dialogue: the general layout, to build on.
    Optional parts: RecordContents, ReportWords.
An export format
    Format, FormatOptions, Row, LeftOut, RunReader, Chat.
    FormatCard, FormatLayout: parts of a format, with texts, and with files, columns and facts about rows.
A measure
    Measure, Sample, Words, figure_kinds.
    Total, Share, Mean, Histogram, Tally: aggregates of the columns of conversations.
    Optional parts: OwnCount, NeedsDataSet, OwnTexts.

A base class holds what each object of its kind needs. An object that does more derives from an optional part
as well, as in `class Notes(ReportWords, Family)`. Parts that few objects have are in the kind's submodule.
`part_of` returns a part of any object, or the part's defaults.

A name is loaded when it is first used, so importing one does not import the others.

**The second level** is for edgen's own kinds, which import nothing else of edgen: `edgen.plugin.providers`,
`protocols`, `families`, `readers`, `formats`, `measures`, for askers `askers`, and, for several kinds,
`answers`, `forms`, `files`, `errors`, `statistics` and `texts`. These names may change in any minor release;
CHANGELOG.md lists changes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from edgen.config import Job as Job
    from edgen.config import settings_of as settings_of
    from edgen.config.backends import BackendConfig as BackendConfig
    from edgen.config.backends import RequestFeatures as RequestFeatures
    from edgen.config.job import RolesAndSettings as RolesAndSettings
    from edgen.core.errors import CallError as CallError
    from edgen.core.errors import FailureKind as FailureKind
    from edgen.core.forms import AnswerKind as AnswerKind
    from edgen.core.registry import part_of as part_of
    from edgen.core.values import Address as Address
    from edgen.core.values import Conversation as Conversation
    from edgen.core.values import Message as Message
    from edgen.core.values import Rejection as Rejection
    from edgen.core.values import Reply as Reply
    from edgen.core.values import Request as Request
    from edgen.core.values import Scenario as Scenario
    from edgen.core.values import Turn as Turn
    from edgen.evaluation.aggregates import Histogram as Histogram
    from edgen.evaluation.aggregates import Mean as Mean
    from edgen.evaluation.aggregates import Share as Share
    from edgen.evaluation.aggregates import Tally as Tally
    from edgen.evaluation.aggregates import Total as Total
    from edgen.evaluation.measure import Measure as Measure
    from edgen.evaluation.measure import NeedsDataSet as NeedsDataSet
    from edgen.evaluation.measure import OwnCount as OwnCount
    from edgen.evaluation.measure import OwnTexts as OwnTexts
    from edgen.evaluation.measure import figure_kinds as figure_kinds
    from edgen.evaluation.sample import Sample as Sample
    from edgen.evaluation.sample import Words as Words
    from edgen.export.format import Chat as Chat
    from edgen.export.format import Format as Format
    from edgen.export.format import FormatCard as FormatCard
    from edgen.export.format import FormatLayout as FormatLayout
    from edgen.export.format import FormatOptions as FormatOptions
    from edgen.export.format import LeftOut as LeftOut
    from edgen.export.format import Row as Row
    from edgen.export.format import RunReader as RunReader
    from edgen.families.base import Family as Family
    from edgen.families.base import Provenance as Provenance
    from edgen.families.base import Recorded as Recorded
    from edgen.families.dialogue import Dialogue as Dialogue
    from edgen.families.reader import RecordContents as RecordContents
    from edgen.families.reader import ReportWords as ReportWords
    from edgen.prompting import scenario_variables as scenario_variables
    from edgen.protocols.base import ConversationProtocol as ConversationProtocol
    from edgen.protocols.base import ExpectedCall as ExpectedCall
    from edgen.protocols.base import Prompting as Prompting
    from edgen.protocols.base import Question as Question
    from edgen.protocols.base import Rules as Rules
    from edgen.protocols.base import SelfDescription as SelfDescription
    from edgen.protocols.base import SimulatedAnswers as SimulatedAnswers
    from edgen.protocols.base import Simulation as Simulation
    from edgen.protocols.base import Template as Template
    from edgen.protocols.base import ask as ask
    from edgen.providers.base import Backend as Backend
    from edgen.providers.base import BatchAnswers as BatchAnswers
    from edgen.providers.base import Key as Key
    from edgen.providers.base import Link as Link
    from edgen.providers.base import LocalCalls as LocalCalls
    from edgen.providers.base import Provider as Provider
    from edgen.reading.conversation import read as read
    from edgen.space import Space as Space
    from edgen.space.model import template_variables as template_variables

_HOMES = {
    "edgen.config": "Job settings_of",
    "edgen.config.backends": "BackendConfig RequestFeatures",
    "edgen.config.job": "RolesAndSettings",
    "edgen.core.errors": "CallError FailureKind",
    "edgen.core.forms": "AnswerKind",
    "edgen.core.registry": "part_of",
    "edgen.core.values": "Address Conversation Message Rejection Reply Request Scenario Turn",
    "edgen.evaluation.aggregates": "Histogram Mean Share Tally Total",
    "edgen.evaluation.measure": "Measure NeedsDataSet OwnCount OwnTexts figure_kinds",
    "edgen.evaluation.sample": "Sample Words",
    "edgen.export.format": "Chat Format FormatCard FormatLayout FormatOptions LeftOut Row RunReader",
    "edgen.families.base": "Family Provenance Recorded",
    "edgen.families.dialogue": "Dialogue",
    "edgen.families.reader": "RecordContents ReportWords",
    "edgen.prompting": "scenario_variables",
    "edgen.protocols.base": (
        "ConversationProtocol ExpectedCall Prompting Question Rules SelfDescription "
        "SimulatedAnswers Simulation Template ask"
    ),
    "edgen.providers.base": "Backend BatchAnswers Key Link LocalCalls Provider",
    "edgen.reading.conversation": "read",
    "edgen.space": "Space",
    "edgen.space.model": "template_variables",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = list(_HOME_OF)
_MOVED = {
    "errors": "InputError Problem",
    "providers": "PricesAndTokens ServiceKeys Usage",
    "protocols": "PlayedProtocol Session AnswerForms SharedPreparation TurnByTurn RejectionReason",
    "families": "KindDefaults LayoutChecks",
    "measures": "OwnComparisons JudgeAnswers",
}
_MOVED_TO = {name: home for home, names in _MOVED.items() for name in names.split()}


def import_name(module: str, name: str, homes: dict[str, str]) -> Any:
    """Import a name of a module at its first use. `homes`: the names of each other module that holds some.
    Raises AttributeError."""
    import importlib
    import sys

    for home, names in homes.items():
        if name in names.split():
            found = getattr(importlib.import_module(home), name)
            setattr(sys.modules[module], name, found)
            return found
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def import_later(module: str, homes: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module whose names are imported at their first use."""
    import sys

    later = " ".join(homes.values()).split()
    return (lambda name: import_name(module, name, homes)), (lambda: [*vars(sys.modules[module]), *later])


def __getattr__(name: str) -> Any:
    if name in _MOVED_TO:  # an AttributeError's words are lost in `from edgen.plugin import …`
        raise ImportError(f"{name} has moved: from edgen.plugin.{_MOVED_TO[name]} import {name}", name=name)
    return import_name(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
