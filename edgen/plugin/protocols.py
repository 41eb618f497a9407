"""Names for protocols that brief roles as edgen's own protocols do, or request other results than
conversations.

    from edgen.plugin.protocols import conversation_variables, labels_of

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

Optional parts of a protocol
    AnswerForms: structured answers. SharedPreparation: preparation for all conversations, and rounds.
        TurnByTurn: branching, environments, the view of a person who plays a role.
    PlayedProtocol, Session: the base of protocols whose conversations are played turn by turn.
Conversations
    RejectionReason: edgen's reasons for rejections. DeclaredReason: a protocol's own reason. Rounds, Starter:
        for optional methods. SpaceRole: a role of a space. unread: the rejection of an unreadable reply.
        Labels, labels_of: names of a space's roles in texts. FENCED: the variables of a fence.
    Stage, play: a conversation turn by turn. Selfplay, CLOSING, CLOSING_STEP, MOST_TURNS: its settings and
        steps. ask_turn: `ask` for a turn; if the turn is cut off, its complete sentences are kept.
        TURN_VARIABLES, CONVERSATION_VARIABLES: further variables of their templates.
    conversation_variables: values of these variables. describe_space: a space and a scenario for a judge's
        template. learner: the role that another role teaches.
    list_layout_roles: the roles of a space's layout. find_turn_templates: its templates of turns.
        AllowedCells: the cells that a space allows.
    FindFile: the path of a file that a job names. describe_ending: who ended the conversation.
Prompts that quote texts of models or people
    fence_turns, fence_texts: the variables of one conversation, or of several texts, in a fence. CONTINUED:
        marks further lines of a turn. transcript_of: turns as lines.
    Candidate: a conversation to compare. TaskId: the subject of a request, for the ledger. Share: a number
        from 0 to 1, as a setting; Text: a text that is not empty.
    append_message, join_brief: messages of a chat. reject_too_little: a rejection for too few turns.
The view of a person who plays a role
    View, Offer: the view of a request (`Question.view`, `Session.view`). list_utterances: speaker and text of
        turns. words_without_marks: a template's words, for people.
    Questionnaire, load_questionnaire, read_questionnaire, QuestionnaireError: items with a Scale each.
Values for a space
    Protocol: the base of all protocols. read_values: a reply that lists values.
    name_list: the key of a dimension's list. LONGEST: characters of a value. KnownValues, value_problem:
        existing values, and invalid ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgen import plugin
from edgen.config.backends import Text as Text
from edgen.config.job import FindFile as FindFile
from edgen.core.options import Share as Share
from edgen.core.people.requests import Offer as Offer
from edgen.core.people.requests import View as View
from edgen.core.values import RejectionReason as RejectionReason
from edgen.core.values import TaskId as TaskId
from edgen.protocols.base import AnswerForms as AnswerForms
from edgen.protocols.base import Protocol as Protocol
from edgen.protocols.base import Rounds as Rounds
from edgen.protocols.base import SharedPreparation as SharedPreparation
from edgen.protocols.base import Starter as Starter
from edgen.protocols.base import TurnByTurn as TurnByTurn
from edgen.protocols.base import describe_ending as describe_ending
from edgen.protocols.base import transcript_of as transcript_of
from edgen.protocols.base import unread as unread
from edgen.protocols.parts import CONVERSATION_VARIABLES as CONVERSATION_VARIABLES
from edgen.protocols.parts import TURN_VARIABLES as TURN_VARIABLES
from edgen.protocols.parts import Labels as Labels
from edgen.protocols.parts import conversation_variables as conversation_variables
from edgen.protocols.parts import describe_space as describe_space
from edgen.protocols.parts import labels_of as labels_of
from edgen.protocols.parts import learner as learner
from edgen.protocols.reasons import DeclaredReason as DeclaredReason
from edgen.space import SpaceRole as SpaceRole
from edgen.space.entries import value_problem as value_problem
from edgen.space.model import find_turn_templates as find_turn_templates
from edgen.space.model import list_layout_roles as list_layout_roles
from edgen.space.model import name_list as name_list

if TYPE_CHECKING:
    from edgen.core.pair import Candidate as Candidate
    from edgen.protocols.fence import CONTINUED as CONTINUED
    from edgen.protocols.fence import FENCED as FENCED
    from edgen.protocols.fence import fence_texts as fence_texts
    from edgen.protocols.fence import fence_turns as fence_turns
    from edgen.protocols.questionnaire import Questionnaire as Questionnaire
    from edgen.protocols.questionnaire import QuestionnaireError as QuestionnaireError
    from edgen.protocols.questionnaire import Scale as Scale
    from edgen.protocols.questionnaire import load_questionnaire as load_questionnaire
    from edgen.protocols.questionnaire import read_questionnaire as read_questionnaire
    from edgen.protocols.selfplay_settings import CLOSING as CLOSING
    from edgen.protocols.selfplay_settings import CLOSING_STEP as CLOSING_STEP
    from edgen.protocols.selfplay_settings import MOST_TURNS as MOST_TURNS
    from edgen.protocols.selfplay_settings import Selfplay as Selfplay
    from edgen.protocols.session import PlayedProtocol as PlayedProtocol
    from edgen.protocols.session import Session as Session
    from edgen.protocols.session import append_message as append_message
    from edgen.protocols.session import ask_turn as ask_turn
    from edgen.protocols.session import join_brief as join_brief
    from edgen.protocols.stage import Stage as Stage
    from edgen.protocols.stage import play as play
    from edgen.protocols.stage import reject_too_little as reject_too_little
    from edgen.protocols.views import list_utterances as list_utterances
    from edgen.protocols.views import words_without_marks as words_without_marks
    from edgen.reading.answers.values import LONGEST as LONGEST
    from edgen.reading.answers.values import read_values as read_values
    from edgen.space.cells import AllowedCells as AllowedCells
    from edgen.space.similar_values import KnownValues as KnownValues

_LATER = {
    "edgen.core.pair": "Candidate",
    "edgen.protocols.fence": "CONTINUED FENCED fence_texts fence_turns",
    "edgen.protocols.questionnaire": "Questionnaire QuestionnaireError Scale load_questionnaire read_questionnaire",
    "edgen.protocols.selfplay_settings": "CLOSING CLOSING_STEP MOST_TURNS Selfplay",
    "edgen.protocols.session": "PlayedProtocol Session append_message ask_turn join_brief",
    "edgen.protocols.stage": "Stage play reject_too_little",
    "edgen.protocols.views": "list_utterances words_without_marks",
    "edgen.reading.answers.values": "LONGEST read_values",
    "edgen.space.cells": "AllowedCells",
    "edgen.space.similar_values": "KnownValues",
}
"""The names imported at their first use, by module."""

__getattr__, __dir__ = plugin.import_later(__name__, _LATER)
