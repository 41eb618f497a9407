"""A corpus as ConvoKit reads it: https://convokit.cornell.edu/documentation/data_format.html

Every conversation has two speakers of its own. To ConvoKit a speaker is a person, whose utterances in several
conversations it adds up and compares; here each conversation's teacher and student are drawn anew, with
preferences and reactions that are theirs alone and stand in their metadata, beside `role`, by which they are
grouped. One Teacher and one Student for all would be two people who change their character each time.

A conversation is called as its first utterance, as the format has it. Timestamps are the places of turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from edgen.exporters.base import DEFAULT, Config, Format, Item, Row, Run
from edgen.exporters.voice import Voice

if TYPE_CHECKING:
    from edgen.runreader import Lesson

# What the metadata hold, by the types that ConvoKit's index names.
UTTERANCE = {"role": "str", "turn": "int"}
SPEAKER = {"role": "str", "preference": "str", "reaction": "str"}
CONVERSATION = {"split": "str", "topic": "str", "subject": "str", "level": "str", "scenario": "int",
                "replicate": "int", "arm": "str", "probability": "float", "ended_by": "str", "model": "str",
                "simulated": "bool"}  # fmt: skip


def rows(run: Run, _voice: Voice) -> Iterator[Item]:
    """A row a conversation, with its utterances and its two speakers as the corpus has them."""
    for lesson in run.lessons():
        value = {
            "id": lesson.candidate.id,
            "meta": _meta(lesson),
            "speakers": _speakers(lesson),
            "utterances": _utterances(lesson),
        }
        yield Row(lesson.split, value)


def _meta(lesson: Lesson) -> dict[str, Any]:
    one, about = lesson.candidate, lesson.scenario
    return {
        "split": lesson.split,
        "topic": about.topic,
        "subject": about.subject,
        "level": about.level,
        "scenario": about.index,
        "replicate": one.replicate,
        "arm": one.arm,
        "probability": one.probability,
        "ended_by": one.ended_by,
        "model": lesson.record.get("provenance", {}).get("model"),
        "simulated": one.simulated,
    }


def _speakers(lesson: Lesson) -> dict[str, dict[str, str]]:
    name, about = lesson.candidate.id, lesson.scenario
    return {
        f"{name}-Teacher": {
            "role": "Teacher",
            "preference": about.teacher_preference,
            "reaction": about.teacher_reaction,
        },
        f"{name}-Student": {
            "role": "Student",
            "preference": about.student_preference,
            "reaction": about.student_reaction,
        },
    }


def _utterances(lesson: Lesson) -> list[dict[str, Any]]:
    """The turns, each a reply to the one before it."""
    name = lesson.candidate.id
    ids = [name, *(f"{name}-{number}" for number in range(1, len(lesson.candidate.turns)))]
    return [
        {
            "id": ids[number],
            "conversation_id": name,
            "text": turn.text,
            "speaker": f"{name}-{turn.role}",
            "meta": {"role": turn.role, "turn": number},
            "reply-to": ids[number - 1] if number else None,
            "timestamp": number,
            "vectors": [],
        }
        for number, turn in enumerate(lesson.candidate.turns)
    ]


FORMAT = Format(
    name="convokit",
    of="conversations",
    summary="A corpus of whole conversations, as ConvoKit loads it.",
    rows=rows,
    configs=(
        Config(
            DEFAULT,
            {
                "utterances.jsonl": "a turn a line: text (without the end marker), speaker, reply-to; metadata: "
                + ", ".join(UTTERANCE),
                "speakers.json": "two of each conversation; metadata: " + ", ".join(SPEAKER),
                "conversations.json": "metadata: " + ", ".join(CONVERSATION),
                "corpus.json": "metadata of the whole: the run, and whether a simulator had a part in it",
                "index.json": "what metadata there are, and of which types",
            },
        ),
    ),
    use="""\
from convokit import Corpus
corpus = Corpus(filename="THIS_FOLDER")
train = corpus.filter_conversations_by(lambda conversation: conversation.meta["split"] == "train")""",
    notes=(
        "Every conversation has a teacher and a student of its own; speaker.meta['role'] groups them.",
        "Timestamps are the turns' places in their conversation, from 0; nobody measured a time.",
        "Of an experiment with arms, corpus.filter_conversations_by tells them apart by meta['arm'].",
    ),
    files="convokit",
    voiced=False,
    tags=("convokit", "education-dialogue", "conversational"),
)
