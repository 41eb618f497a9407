"""Readers of a model's answers, and forms of answers, in addition to those of `edgen.plugin`.

    from edgen.plugin.answers import make_acted_turn_form, read_acted_turn

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

read_turn: one turn. ActedTurn, make_acted_turn_form, read_acted_turn: a turn with its actions; NO_ACTIONS:
the reason for rejecting a turn without actions. Chosen, choice_form, read_choice: one of several offers, or a
text of its own; NOT_OFFERED: the reason for rejecting any other answer. read_scores: a number for each name,
at most MOST_SCORE. body_of, object_in, strip_fence, drop_thinking: the answer within a reply. fold_key: a
name in the form for comparisons. find_service_refusal: a refusal by the service. RoleWords, OwnWords,
TEACHER_STUDENT: words for roles. JsonMembers, parse: readers of JSON with mistakes. replace_surrogates: a
text that every file can hold.
"""

from __future__ import annotations

from edgen.reading.answer_body import body_of as body_of
from edgen.reading.answer_body import fold_key as fold_key
from edgen.reading.answer_body import object_in as object_in
from edgen.reading.answer_body import strip_fence as strip_fence
from edgen.reading.answers.acted_turn import NO_ACTIONS as NO_ACTIONS
from edgen.reading.answers.acted_turn import ActedTurn as ActedTurn
from edgen.reading.answers.acted_turn import make_acted_turn_form as make_acted_turn_form
from edgen.reading.answers.acted_turn import read_acted_turn as read_acted_turn
from edgen.reading.answers.choice import NOT_OFFERED as NOT_OFFERED
from edgen.reading.answers.choice import Chosen as Chosen
from edgen.reading.answers.choice import choice_form as choice_form
from edgen.reading.answers.choice import read_choice as read_choice
from edgen.reading.answers.scores import MOST_SCORE as MOST_SCORE
from edgen.reading.answers.scores import read_scores as read_scores
from edgen.reading.assistant_words import find_service_refusal as find_service_refusal
from edgen.reading.loose_json.parser import JsonMembers as JsonMembers
from edgen.reading.loose_json.parser import parse as parse
from edgen.reading.one_turn.reader import read_turn as read_turn
from edgen.reading.roles import TEACHER_STUDENT as TEACHER_STUDENT
from edgen.reading.roles import OwnWords as OwnWords
from edgen.reading.roles import RoleWords as RoleWords
from edgen.reading.text.characters import replace_surrogates as replace_surrogates
from edgen.reading.text.thinking import drop_thinking as drop_thinking
