"""Names for protocols that brief roles as edgen's own do, or ask for other things than conversations.

    from edgen.plugin.protocols import conversation_variables, labels_of

The promise of `edgen.plugin` does not cover these names: they may change in any minor release, which
CHANGELOG.md says.

Conversations
    Role: the name of a role, a text. Labels, labels_of: how a space's roles are called in texts. FENCED:
        the variables of a fence.
    Stage, play: a conversation turn by turn. ask_turn: `ask` for a turn, which is kept up to its last
        sentence if it is cut off. TURN_VARIABLES, CONVERSATION_VARIABLES: what their templates
        may use besides.
    conversation_variables: the values of these. describe_space: the same for a judge, without what entries
        say of themselves. learner: the role that another one teaches.
    DEFAULT_VARIABLES, DIMENSIONS, ROLES: those of the space of five lists.
    has_five_dimensions: whether a space is that one. TOPIC_FIELDS: fields of its topics.
    five_list_scenario: a scenario of it. AllowedCells: cells of a space without those that it rules out.
    FindFile: the path of a file that a job names. ended: who ended the conversation.
Prompts that quote what models or people wrote
    fence_text, fence_turns: a text, or turns, in a fence. make_mark: the fence's mark. guarded_lines: lines
        that cannot pass for the fence. CONTINUED: the sign of a line that goes on. transcript_of: turns as
        lines.
    TaskId: what a request is about, for the ledger. Share: a number from 0 to 1, as a setting.
    append_message, in_one_message: messages of a chat. too_little: a rejection for too few turns.
What a person sees who plays a role
    View, Offer: the view of a request (`Question.view`, `Session.view`). said_in: speaker and
        text of turns.
    Questionnaire, load_questionnaire, read_questionnaire, QuestionnaireError: items with a Scale each.
Values for a space
    Protocol: the base of all protocols. read_values: a reply that lists
        values.
    LISTS: the five lists. LONGEST: characters of a value. KnownValues, value_problem: values that are old
        or no good.
"""

from __future__ import annotations

from edgen.plugin.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edgen.config.backends import Share as Share
    from edgen.core.person_requests import Offer as Offer
    from edgen.core.person_requests import View as View
    from edgen.core.values import Role as Role
    from edgen.core.values import TaskId as TaskId
    from edgen.protocols.base import FindFile as FindFile
    from edgen.protocols.base import Protocol as Protocol
    from edgen.protocols.base import ended as ended
    from edgen.protocols.base import transcript_of as transcript_of
    from edgen.protocols.fence import CONTINUED as CONTINUED
    from edgen.protocols.fence import FENCED as FENCED
    from edgen.protocols.fence import fence_text as fence_text
    from edgen.protocols.fence import fence_turns as fence_turns
    from edgen.protocols.fence import guarded_lines as guarded_lines
    from edgen.protocols.fence import make_mark as make_mark
    from edgen.protocols.parts import (
        CONVERSATION_VARIABLES as CONVERSATION_VARIABLES,
    )
    from edgen.protocols.parts import (
        TURN_VARIABLES as TURN_VARIABLES,
    )
    from edgen.protocols.parts import (
        Labels as Labels,
    )
    from edgen.protocols.parts import (
        conversation_variables as conversation_variables,
    )
    from edgen.protocols.parts import (
        describe_space as describe_space,
    )
    from edgen.protocols.parts import (
        labels_of as labels_of,
    )
    from edgen.protocols.parts import (
        learner as learner,
    )
    from edgen.protocols.questionnaire import Questionnaire as Questionnaire
    from edgen.protocols.questionnaire import QuestionnaireError as QuestionnaireError
    from edgen.protocols.questionnaire import Scale as Scale
    from edgen.protocols.questionnaire import load_questionnaire as load_questionnaire
    from edgen.protocols.questionnaire import read_questionnaire as read_questionnaire
    from edgen.protocols.session import ask_turn as ask_turn
    from edgen.protocols.stage import Stage as Stage
    from edgen.protocols.stage import append_message as append_message
    from edgen.protocols.stage import in_one_message as in_one_message
    from edgen.protocols.stage import play as play
    from edgen.protocols.stage import too_little as too_little
    from edgen.protocols.views import said_in as said_in
    from edgen.reading.answers.values import LONGEST as LONGEST
    from edgen.reading.answers.values import read_values as read_values
    from edgen.space.cells import AllowedCells as AllowedCells
    from edgen.space.entries import value_problem as value_problem
    from edgen.space.model import (
        DEFAULT_VARIABLES as DEFAULT_VARIABLES,
    )
    from edgen.space.model import (
        DIMENSIONS as DIMENSIONS,
    )
    from edgen.space.model import (
        LISTS as LISTS,
    )
    from edgen.space.model import (
        ROLES as ROLES,
    )
    from edgen.space.model import TOPIC_FIELDS as TOPIC_FIELDS
    from edgen.space.model import five_list_scenario as five_list_scenario
    from edgen.space.model import (
        has_five_dimensions as has_five_dimensions,
    )
    from edgen.space.similar_values import KnownValues as KnownValues
else:
    __getattr__ = names_from(
        __name__,
        {
            "edgen.config.backends": "Share",
            "edgen.space.cells": "AllowedCells",
            "edgen.core.person_requests": "Offer View",
            "edgen.core.values": "Role TaskId",
            "edgen.protocols.views": "said_in",
            "edgen.protocols.questionnaire": (
                "Questionnaire QuestionnaireError Scale load_questionnaire read_questionnaire"
            ),
            "edgen.protocols.base": "FindFile Protocol ended transcript_of",
            "edgen.protocols.parts": (
                "CONVERSATION_VARIABLES Labels TURN_VARIABLES conversation_variables describe_space labels_of learner"
            ),
            "edgen.protocols.session": "ask_turn",
            "edgen.protocols.fence": "CONTINUED FENCED fence_text fence_turns guarded_lines make_mark",
            "edgen.protocols.stage": "Stage append_message in_one_message play too_little",
            "edgen.reading.answers.values": "LONGEST read_values",
            "edgen.space.model": (
                "DEFAULT_VARIABLES DIMENSIONS LISTS ROLES TOPIC_FIELDS five_list_scenario has_five_dimensions"
            ),
            "edgen.space.similar_values": "KnownValues",
            "edgen.space.entries": "value_problem",
        },
    )
