"""The layout of CIMA's released `dataset.json` (Stasaski, Kao and Hearst, BEA 2020): a context of one
exercise and the tutors' responses to it, each with its actions as booleans.

There are two variants. For prepositional phrases, the student's actions are the texts "True" and "False" and
the tutors' are booleans. For shapes, the context is one text and all booleans are texts.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.domains.tutoring.cima_files import SPEAKER, STUDENT_ACTIONS, TUTOR_ACTIONS
from edgen.domains.tutoring.exercises.drawing import draw_exercise, make_picture_name
from edgen.domains.tutoring.exercises.model import Exercise
from edgen.domains.tutoring.served_turns import list_responses
from edgen.plugin import Chat, Format, FormatCard, FormatLayout, LeftOut, Row, RunReader, Space, Turn
from edgen.plugin.formats import AcceptedConversation, LayerOptions, SplitFiles, Tried, WriteRow
from edgen.plugin.texts import pictures_in

PICTURES = "pictures"  # the pictures' folder
MOST_TURNS = 10  # turns of a context, as in the release
_PREP, _SHAPE = ("preposition", "object", "colour"), ("shape", "colour")


class CimaFormat(Format):
    """The format of both layouts; the space of a run decides which one applies."""

    def refuse(self, run: RunReader) -> str | None:
        """Return why a run cannot be exported, such as a space without CIMA's concepts; None if it can."""
        if (refused := Format.refuse(self, run)) is not None:
            return refused
        if _find_concepts(run.space) is None:
            return (
                f"{run.name}: cima holds exercises of preposition, object and colour, or of shape and "
                "colour, each with its "
                f"Italian word as `it`; those of {run.space.name} are of others. hf and csv take any."
            )
        return None


def _find_concepts(space: Space) -> tuple[str, ...] | None:
    """Return the concepts of the layout that fits a space; None if neither does."""
    for names in (_PREP, _SHAPE):
        if {*names} <= {*space.names} and all("it" in space[name].fields for name in names):
            return names
    return None


def rows(run: RunReader, _chat: Chat) -> Iterator[Row | LeftOut]:
    """Yield a row for each student turn with responses, even if several conversations share the turns before
    it."""
    from edgen.domains.tutoring.exercises.grammar import Grammar

    grammar = Grammar(run.space)
    concepts = _find_concepts(run.space)
    for conversation in run.conversations():
        for context, responses, exercise in _list_contexts(conversation):
            made = grammar.make_exercise_of_record(conversation.scenario, exercise)
            turns = [*context, *responses]
            if not _fits(turns):
                yield LeftOut("actions")
            elif len(context) > MOST_TURNS:
                yield LeftOut("long_context")
            elif concepts == _PREP:
                name, picture = _make_picture(made)
                entry = _make_prep_entry(context, responses, made, grammar.space, name)
                files = {} if picture is None else {name: picture}
                yield Row(conversation.split, entry, files=files)
            elif any(SPEAKER.search(turn.text) for turn in context):
                yield LeftOut("names_speaker")
            else:
                yield Row(conversation.split, _make_shape_entry(context, responses, made, grammar.space))


def _list_contexts(conversation: AcceptedConversation) -> Iterator[tuple[list[Turn], Sequence[Turn], Any]]:
    """Yield the responses to each turn of a student, with the earlier turns about its exercise, and the
    exercise."""
    exercises = (conversation.record.get("outcome") or {}).get("exercises") or []
    context: list[Turn] = []
    exercise: Any = None
    for turn in conversation.turns:
        if "exercise" in turn.data:
            context, exercise = [], exercises[turn.data["exercise"]]
        elif turn.role == "Tutor" and turn.labels and exercise is not None and (said := list_responses(turn)):
            yield list(context), said, exercise
        context.append(turn)


def _fits(turns: Sequence[Turn]) -> bool:
    """Return whether all actions are CIMA's."""
    known = {"Tutor": frozenset(TUTOR_ACTIONS)}
    return all(known.get(turn.role, frozenset(STUDENT_ACTIONS)).issuperset(turn.labels) for turn in turns)


def _make_prep_entry(
    context: Sequence[Turn], responses: Sequence[Turn], made: Exercise, space: Space, img: str
) -> dict[str, Any]:
    english, spelled = made.concepts, _make_phrase(made, space)
    return {
        "past_convo": [turn.text for turn in context],
        "img": img,
        "prep": spelled[0],
        "engPrep": f"is {english['preposition']} the",
        "obj": spelled[1],
        "engObj": english["object"],
        "color": spelled[2],
        "engColor": english["colour"],
        "grammarRules": msgspec.json.encode([[rule, ""] for rule in made.rules]).decode(),
        "studentActions": [str(action in context[-1].labels) for action in STUDENT_ACTIONS],
        "tutorResponses": [turn.text for turn in responses],
        "tutorActions": [[action in turn.labels for action in TUTOR_ACTIONS] for turn in responses],
        "tutorKeys": [],
    }


def _make_picture(made: Exercise) -> tuple[str, str | bytes | None]:
    """Return the name and the content of an exercise's picture: the space's own file, or the grammar's
    drawing; None without either."""
    name = f"{PICTURES}/{make_picture_name(made)}"
    if own := pictures_in(made.picture or ""):
        return str(Path(name).with_suffix(f".{own[0].media_type.removeprefix('image/')}")), own[0].data
    return name, draw_exercise(made)


def _make_shape_entry(
    context: Sequence[Turn], responses: Sequence[Turn], made: Exercise, space: Space
) -> dict[str, Any]:
    english, italian = made.concepts, _find_italian(made, space)
    said = "".join(f" {'Tutor' if turn.role == 'Tutor' else 'Student'}: {turn.text}" for turn in context)
    return {
        "pastConvo": said,
        "shape": italian["shape"],
        "engShape": english["shape"],
        "color": italian["colour"],
        "engColor": english["colour"],
        "tutorResponses": [turn.text for turn in responses],
        "tutorActions": [[str(action in turn.labels) for action in TUTOR_ACTIONS] for turn in responses],
    }


def _make_phrase(made: Exercise, space: Space) -> tuple[str, str, str]:
    """Return preposition, object and colour as they occur in the answer, spelled as in the release: "e dentro
    la", "borsa", "blu". An article that ends in an apostrophe belongs to the object ("l'albero").

    If the answer lacks the object's word, return the words of the concepts.
    """
    italian = _find_italian(made, space)
    answer = _strip_accents(made.answer)
    noun = re.search(rf"(?<!\S)(\S*['’])?{re.escape(_strip_accents(italian['object']))}(?!\w)", answer)
    if noun is None:
        return italian["preposition"], italian["object"], italian["colour"]
    return answer[: noun.start()].strip(), noun[0], answer[noun.end() :].strip()


def _strip_accents(text: str) -> str:
    """Return a text without accents, as the release spells Italian."""
    apart = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(one for one in apart if not unicodedata.combining(one)))


def _find_italian(made: Exercise, space: Space) -> dict[str, Any]:
    """Return the Italian words of an exercise's concepts."""
    return {name: space[name].find_entry(value).fields["it"] for name, value in made.concepts.items()}


class CimaFiles(SplitFiles):
    """A writer of a JSON object for each split: both data sets by name, the entries of one of them by
    number."""

    suffix = "json"

    def begin(self, path: Path) -> WriteRow:
        """Open a split's file; return the function that writes a row."""
        if _find_concepts(self.staging.run.space) == _PREP:
            add = self.open_items(path, b'{"prepDataset":{\n', b'},"shapeDataset":{}}\n')
        else:
            add = self.open_items(path, b'{"prepDataset":{},"shapeDataset":{\n', b"}}\n")
        numbers, encode = itertools.count(), msgspec.json.Encoder().encode
        return lambda value: add(b'"%d":%b' % (next(numbers), encode(value)))


FORMAT = CimaFormat(
    name="cima",
    summary="Contexts of exercises with the tutors' responses and their actions, in the layout of CIMA's "
    "released data.",
    rows=rows,
    card=FormatCard(
        reasons={
            "actions": "an utterance takes actions that this format cannot express",
            "long_context": "more turns come before than this format holds",
            "names_speaker": "a text names a speaker as this format does where a turn begins, so it could not be "
            "read back",
        },
        notes=(
            (
                "A turn of the student is a row of its own, with the turns before it as its context; contexts "
                "of more than 10 turns are left out, as in the release."
            ),
            (
                "The parts of the answer are spelled as in the release, without accents: `e dietro`, "
                "`l'albero`, `rosa`. `engPrep` is the whole phrase (`is behind the`)."
            ),
        ),
        tried=(
            Tried(
                library="MastersThesis",
                version="8815371",
                day="2026-11-22",
                what="the data_processing.py and transform_cima.py of github.com/AayushKucheria/MastersThesis, "
                "written for the release, read every entry with the run's own texts and actions.",
            ),
        ),
        tags=("tutoring", "conversational"),
    ),
    tables={
        "past_convo": "the turns about the exercise, the tutor's first, the student's last; of shapes: "
        "pastConvo, one text",
        "tutorResponses": "the tutors' responses, first the one that the conversation continued with",
        "tutorActions": "for each response Question, Hint, Correction, Confirmation, Other; of shapes as "
        "texts",
        "studentActions": 'Guess, Question, Affirmation, Other, as "True" and "False"; not of shapes',
        "prep, engPrep, obj, engObj, color, engColor, shape, engShape": "the words of the exercise, in "
        "Italian and English",
        "grammarRules": "the grammar that the tutor may tell, [[rule, note] …] as JSON in a text; not of "
        "shapes",
        "img": "the exercise's picture in this folder: the space's image file, or an SVG file where it draws "
        "one; not of shapes",
    },
    use="""\
import json
entries = json.load(open("THIS_FOLDER/train.json", encoding="utf-8"))["prepDataset"]""",
    family="tutoring",
    layout=FormatLayout(files=CimaFiles, by_range=True),
    chat=False,
    Options=LayerOptions,
)
