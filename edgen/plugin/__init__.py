"""All names for packages that add a provider, a protocol, a family, an export format or a measure.

    from edgen.plugin import Measure, Sample, Words

**Promise.** These names stay, and what they take and return stays. A release that has to change one of them
first keeps the old form for two minor releases with a warning, and CHANGELOG.md says what to write instead.
New names, new optional parameters and new optional methods may come in any release. All else in edgen may
change in any release: a plugin that imports another module of edgen works, and `edgen list plugins` notes
it.
`edgen.testing` has a check for each kind.

Values that pass between edgen and a plugin
    Scenario, Turn, Conversation, Event: a draw from a space; what was said; a finished conversation; what
        else happened.
    Message, Request, Reply, Token, Usage, Address: one model call. Rejection, RejectionReason: an answer
        that is no good.
    CallError, FailureKind: a call that failed. InputError, UsageError, JobError, Problem: what a user has
        to change.
    Job, settings_of: the job, and the settings that it has for its protocol. Space, SpaceRole: dimensions
        and roles.
    Text: a text that is not empty, for fields of settings.
A provider
    Provider, Backend, BackendConfig, Key, KeyRequest, Link, Price.
    lower_pictures, PromptPicture, PictureTokens: for a service that sees pictures.
    pictures_in, without_pictures: of a text.
A protocol
    ConversationProtocol, Template, Prompting, Rules, Question, ask, Conversing, ExpectedCall, AnswerKind,
        Simulation.
    PlayedProtocol, Session: for conversations played turn by turn. Rounds, Starter: for two optional
        methods.
    scenario_variables, template_variables: what templates may use. read, read_turn, read_probability,
        unread: replies.
A family
    Family, Recorded, Provenance, FiledRecord, filed_record, filed_turns, read_values, write_values.
An export format
    Format, FormatOptions, Row, LeftOut, Item, DataTable, RunReader, AcceptedConversation, Chat.
    RowFiles, Staging, JsonLines: for files of a format's own.
A measure
    Measure, Sample, Words, Shared, ArmResult, Compared, Panel, Value, figure_kinds. Estimate, share,
        average: with intervals.
    Columns, Total, Share, Mean, Histogram, Tally, Crossed, Examples: what the columns of conversations come
        to.
    Picture, Table, bars_picture: for the report.

A name is loaded when it is first used, so importing one does not import the others.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from edgen.config import Job, settings_of
    from edgen.config.backends import BackendConfig, Price, Text
    from edgen.core.errors import CallError, FailureKind, InputError, JobError, Problem, UsageError
    from edgen.core.pictures import (
        PictureTokens,
        PromptPicture,
        lower_pictures,
        pictures_in,
        without_pictures,
    )
    from edgen.core.registry import AnswerKind
    from edgen.core.values import (
        Address,
        Conversation,
        Event,
        Message,
        Rejection,
        RejectionReason,
        Reply,
        Request,
        Scenario,
        Token,
        Turn,
        Usage,
    )
    from edgen.evaluation.aggregates import Columns, Crossed, Examples, Histogram, Mean, Share, Tally, Total
    from edgen.evaluation.figures import Picture, Table, bars_picture
    from edgen.evaluation.measure import ArmResult, Compared, Measure, Panel, Shared, figure_kinds
    from edgen.evaluation.sample import Sample, Words
    from edgen.export.files import JsonLines, RowFiles, Staging
    from edgen.export.format import (
        AcceptedConversation,
        Chat,
        DataTable,
        Format,
        FormatOptions,
        Item,
        LeftOut,
        Row,
        RunReader,
    )
    from edgen.expressions.language import Value
    from edgen.families.base import (
        Family,
        FiledRecord,
        Provenance,
        Recorded,
        filed_record,
        filed_turns,
        read_values,
        write_values,
    )
    from edgen.prompting import scenario_variables
    from edgen.protocols.base import (
        ConversationProtocol,
        Conversing,
        ExpectedCall,
        Prompting,
        Question,
        Rounds,
        Rules,
        Simulation,
        Starter,
        Template,
        ask,
        unread,
    )
    from edgen.protocols.session import PlayedProtocol, Session
    from edgen.providers.base import Backend, Key, KeyRequest, Link, Provider
    from edgen.reading.answers.probability import read_probability
    from edgen.reading.conversation import read
    from edgen.reading.one_turn.reader import read_turn
    from edgen.space import Space, SpaceRole
    from edgen.space.model import template_variables
    from edgen.stats.intervals import Estimate, average, share

_HOMES = {
    "edgen.config": (
        "Job",
        "settings_of",
    ),
    "edgen.config.backends": (
        "BackendConfig",
        "Price",
        "Text",
    ),
    "edgen.core.pictures": (
        "PictureTokens",
        "PromptPicture",
        "lower_pictures",
        "pictures_in",
        "without_pictures",
    ),
    "edgen.core.registry": ("AnswerKind",),
    "edgen.core.errors": (
        "CallError",
        "FailureKind",
        "InputError",
        "JobError",
        "Problem",
        "UsageError",
    ),
    "edgen.core.values": (
        "Address",
        "Conversation",
        "Event",
        "Message",
        "Rejection",
        "RejectionReason",
        "Reply",
        "Request",
        "Scenario",
        "Token",
        "Turn",
        "Usage",
    ),
    "edgen.evaluation.aggregates": (
        "Columns",
        "Crossed",
        "Examples",
        "Histogram",
        "Mean",
        "Share",
        "Tally",
        "Total",
    ),
    "edgen.evaluation.figures": (
        "Picture",
        "Table",
        "bars_picture",
    ),
    "edgen.evaluation.measure": (
        "ArmResult",
        "Compared",
        "Measure",
        "Panel",
        "Shared",
        "figure_kinds",
    ),
    "edgen.evaluation.sample": (
        "Sample",
        "Words",
    ),
    "edgen.export.files": (
        "JsonLines",
        "RowFiles",
        "Staging",
    ),
    "edgen.export.format": (
        "AcceptedConversation",
        "Chat",
        "DataTable",
        "Format",
        "FormatOptions",
        "Item",
        "LeftOut",
        "Row",
        "RunReader",
    ),
    "edgen.expressions.language": ("Value",),
    "edgen.families.base": (
        "Family",
        "FiledRecord",
        "Provenance",
        "Recorded",
        "filed_record",
        "filed_turns",
        "read_values",
        "write_values",
    ),
    "edgen.prompting": ("scenario_variables",),
    "edgen.protocols.base": (
        "ConversationProtocol",
        "Conversing",
        "ExpectedCall",
        "Prompting",
        "Question",
        "Rounds",
        "Rules",
        "Simulation",
        "Starter",
        "Template",
        "ask",
        "unread",
    ),
    "edgen.protocols.session": (
        "PlayedProtocol",
        "Session",
    ),
    "edgen.providers.base": (
        "Backend",
        "Key",
        "KeyRequest",
        "Link",
        "Provider",
    ),
    "edgen.reading.answers.probability": ("read_probability",),
    "edgen.reading.conversation": ("read",),
    "edgen.reading.one_turn.reader": ("read_turn",),
    "edgen.space": (
        "Space",
        "SpaceRole",
    ),
    "edgen.space.model": ("template_variables",),
    "edgen.stats.intervals": (
        "Estimate",
        "average",
        "share",
    ),
}

__all__ = [
    "AcceptedConversation",
    "Address",
    "AnswerKind",
    "ArmResult",
    "Backend",
    "BackendConfig",
    "CallError",
    "Chat",
    "Columns",
    "Compared",
    "Conversation",
    "ConversationProtocol",
    "Conversing",
    "Crossed",
    "DataTable",
    "Estimate",
    "Event",
    "Examples",
    "ExpectedCall",
    "FailureKind",
    "Family",
    "FiledRecord",
    "Format",
    "FormatOptions",
    "Histogram",
    "InputError",
    "Item",
    "Job",
    "JobError",
    "JsonLines",
    "Key",
    "KeyRequest",
    "LeftOut",
    "Link",
    "Mean",
    "Measure",
    "Message",
    "Panel",
    "Picture",
    "PictureTokens",
    "PlayedProtocol",
    "Price",
    "Problem",
    "PromptPicture",
    "Prompting",
    "Provenance",
    "Provider",
    "Question",
    "Recorded",
    "Rejection",
    "RejectionReason",
    "Reply",
    "Request",
    "Rounds",
    "Row",
    "RowFiles",
    "Rules",
    "RunReader",
    "Sample",
    "Scenario",
    "Session",
    "Share",
    "Shared",
    "Simulation",
    "Space",
    "SpaceRole",
    "Staging",
    "Starter",
    "Table",
    "Tally",
    "Template",
    "Text",
    "Token",
    "Total",
    "Turn",
    "Usage",
    "UsageError",
    "Value",
    "Words",
    "ask",
    "average",
    "bars_picture",
    "figure_kinds",
    "filed_record",
    "filed_turns",
    "lower_pictures",
    "pictures_in",
    "read",
    "read_probability",
    "read_turn",
    "read_values",
    "scenario_variables",
    "settings_of",
    "share",
    "template_variables",
    "unread",
    "without_pictures",
    "write_values",
]


def __getattr__(name: str) -> Any:
    import importlib

    for home, names in _HOMES.items():
        if name in names:
            found = getattr(importlib.import_module(home), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'edgen.plugin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
