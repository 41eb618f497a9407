"""The names of the reader's repairs: the values of `Conversation.repairs`.

The published layout and plain JSON need no repair, nor does an end marker in square brackets in any case.
"""

from __future__ import annotations

import enum


class Repair(enum.StrEnum):
    """One kind of repair. No repair changes the words of a turn."""

    BAD_CHARACTERS = "bad_characters"  # lone surrogates became U+FFFD, so that the text can be stored
    THINKING = "thinking"  # a reasoning block was dropped
    CODE_FENCE = "code_fence"  # the answer stood in a Markdown code block
    PREAMBLE = "preamble"  # words before the conversation were dropped
    POSTAMBLE = "postamble"  # words after the conversation were dropped
    EXTRA_CONVERSATION = "extra_conversation"  # there was more than one, and one was taken
    JSON_REPAIRED = "json_repaired"  # JSON that a strict parser refuses
    JSON_ESCAPES = "json_escapes"  # backslashes that JSON wanted doubled, as in \frac
    LAYOUT = "layout"  # other lines than the published ones: numbers, bold, no brackets, other quotes;
    # in a turn of self-play: a label, JSON or quotation marks around it
    ROLE_NAME = "role_name"  # a name or a note next to the role was dropped
    ROLE_ALIAS = "role_alias"  # a tutor was taken as the teacher, a pupil as the student
    MISSING_QUOTE = "missing_quote"  # a turn opened its quotation marks and never closed them
    STRAY_DEBRIS = "stray_debris"  # layout left at a turn's ends: quotation marks, commas, tokens
    STAGE_TAG = "stage_tag"  # words in brackets outside the quotation marks were dropped
    STRAY_TEXT = "stray_text"  # other words between two quoted turns were dropped
    EMPTY_TURN = "empty_turn"  # a turn of nothing, or of dots only, was dropped
    MARKER_FORM = "marker_form"  # the end marker had other words or no square brackets
    UNSPOKEN_MARKER = "unspoken_marker"  # it stood under no role and counts as the last speaker's
    AFTER_END_MARKER = "after_end_marker"  # what came after the end marker was dropped
    OTHER_SPEAKER = "other_speaker"  # another seems to speak inside a turn, whose text stays as it is
    PROBABILITY_UNCLEAR = "probability_unclear"  # there was one, but no single number in [0, 1]
