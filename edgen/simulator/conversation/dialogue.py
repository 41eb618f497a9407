"""A conversation between a teacher and a student that follows from a brief.

`plan_dialogue` decides the course first: whether the ways of learning and teaching fit, who gives way and
when, how the conversation ends, and how probable it is that the student understood. `converse` then writes it
turn by turn, each turn only from its place in the plan and the voice. `render` lays it out as the prompt
shows.
"""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple

from edgen.core.values import END_MARKER, Role
from edgen.reading import phrase_kinds
from edgen.simulator.phrases.book import (
    PhraseSpeaker,
    Phrasing,
    find_praise,
    fit_inside_sentence,
    is_grudging,
    join,
)
from edgen.simulator.prompts.conversation_prompt import ConversationPrompt, ScenarioBrief

Course = Literal["harmony", "teacher_adapts", "student_adapts", "clash"]
Mood = Literal["good", "mixed", "bad"]

MIGHT = 0.75  # probability of an action described with "might"
# Mean and half-width of the probability that the student understood, by course. Over ED's own vocabulary the
# average is about 0.3, the "small chance" of its prompt.
_PROBABILITY: dict[Course, tuple[float, float]] = {
    "harmony": (0.58, 0.3),
    "teacher_adapts": (0.5, 0.26),
    "student_adapts": (0.4, 0.24),
    "clash": (0.14, 0.12),
}
_MARKER_ALONE = 0.06  # share of conversations whose end marker is a separate entry, as in ED


class DialoguePlan(NamedTuple):
    """A conversation before its turns are written."""

    course: Course  # course of the two preferences
    length: int  # number of entries
    turning: int  # the entry at which a side gives way
    mood: Mood  # mood at the end
    probability: float  # probability that the student understood
    marker_alone: bool  # the end marker is an entry of its own
    student: str  # kind of the student's reaction
    teacher: str  # kind of the teacher's reaction
    wants: str  # family of the way that the student prefers
    offers: str  # family of the way that the teacher prefers


Entries = list[tuple[Role, str]]  # includes the end marker


class SpokenDialogue(NamedTuple):
    """A conversation with its turns, from which every layout and defect is made."""

    entries: Entries
    probability: float


def converse(task: ConversationPrompt, rng: Random, aspects: tuple[Phrasing, ...] = ()) -> SpokenDialogue:
    """Return the requested conversation. Every choice is drawn from `rng`. `aspects`: the aspects of the
    topic."""
    plan = plan_dialogue(task, rng)
    voice = PhraseSpeaker(rng, _fill_slots(task.brief, rng), aspects)
    turns: Entries = []
    for i in range(plan.length):
        if i % 2 == 0:
            heard = turns[-1][1] if turns else ""
            turns.append(("Teacher", _write_teacher_turn(plan, task.brief, i, voice, rng, heard)))
        else:
            turns.append(("Student", _write_student_turn(plan, task.brief, i, voice, rng)))
    role, text = turns[-1]
    if plan.marker_alone:
        turns.append(("Student" if role == "Teacher" else "Teacher", END_MARKER))
    elif task.end_marker:
        turns[-1] = (role, f"{text} {END_MARKER}")
    return SpokenDialogue(turns, plan.probability)


def plan_dialogue(task: ConversationPrompt, rng: Random) -> DialoguePlan:
    """Decide the course of the conversation."""
    draw = rng.random
    brief = task.brief
    student = phrase_kinds.find_student_reaction(brief.student_reaction or "")
    teacher = phrase_kinds.find_teacher_reaction(brief.teacher_reaction or "")
    low, high = task.turns
    length = low + int(draw() * (high - low + 1))
    marker_alone = task.end_marker and length < high and draw() < _MARKER_ALONE
    course = _draw_course(brief, student, teacher, rng)
    turning = _draw_turning(course, length, rng)
    middle, spread = _PROBABILITY[course]
    # Two uniform draws make a triangle: most values near the middle, none beyond the spread.
    probability = round(min(0.99, max(0.01, middle + spread * (draw() + draw() - 1))), 2)
    return DialoguePlan(
        course=course,
        length=length,
        turning=turning,
        mood=_make_mood(course, probability),
        probability=probability,
        marker_alone=marker_alone,
        student=student,
        teacher=teacher,
        wants=_choose_family(brief.student_preference, rng),
        offers=_choose_family(brief.teacher_preference, rng),
    )


def _draw_course(brief: ScenarioBrief, student: str, teacher: str, rng: Random) -> Course:
    learning, teaching = brief.student_preference, brief.teacher_preference
    if learning is None or teaching is None or phrase_kinds.match(learning, teaching):
        return "harmony"
    if rng.random() < _yields(teacher, brief.teacher_reaction, told=student == "tells"):
        return "teacher_adapts"
    if student == "adapts" and rng.random() < (
        MIGHT if phrase_kinds.is_hedged(brief.student_reaction or "") else 1
    ):
        return "student_adapts"
    return "clash"


def _yields(teacher: str, reaction: str | None, *, told: bool) -> float:
    """Return the probability that the teacher changes the method. It is higher if the student names the
    problem."""
    if teacher == "adapts":
        hedged = phrase_kinds.is_hedged(reaction or "")
        return (0.9 if told else MIGHT) if hedged else 1.0
    if teacher in ("insists", "gives_up", "blames", "strict") or not told:
        return 0.0
    return 0.2


def _draw_turning(course: Course, length: int, rng: Random) -> int:
    """Draw an even entry for the teacher, an odd one for the student, with room on both sides."""
    if course in ("harmony", "clash"):
        return 0 if course == "harmony" else length
    last = max(2, length - 5)
    choices = [i for i in range(2, last + 1) if (i % 2 == 0) == (course == "teacher_adapts")][:4]
    return choices[int(rng.random() * len(choices))] if choices else 2


def _make_mood(course: Course, probability: float) -> Mood:
    if probability >= 0.5:
        return "good"
    return "bad" if course == "clash" and probability < 0.22 else "mixed"


def _choose_family(phrase: str | None, rng: Random) -> str:
    """Return the phrase's most frequent family of methods, or draw one."""
    names = phrase_kinds.find_methods(phrase) if phrase else ()
    if not names:
        return phrase_kinds.OTHER
    u = rng.random()
    return names[0] if u < 0.6 else names[int(u * len(names))]


def _fill_slots(brief: ScenarioBrief, rng: Random) -> dict[str, str]:
    return {
        "topic": fit_inside_sentence(brief.topic),
        "want": _find_part(brief.student_preference, "another way of learning", rng),
        "have": _find_part(brief.teacher_preference, "my usual method", rng),
    }


def _find_part(phrase: str | None, default: str, rng: Random) -> str:
    if phrase is None:
        return default
    parts = phrase_kinds.split_parts(phrase)
    return parts[int(rng.random() * len(parts))]


def _write_teacher_turn(
    plan: DialoguePlan, brief: ScenarioBrief, i: int, voice: PhraseSpeaker, rng: Random, heard: str
) -> str:
    """Return the teacher's entry `i`, after the last entry that it heard."""
    say, draw = voice.say, rng.random
    if i == 0:
        return join(say("t.open"), say(f"t.method.{plan.offers}") if draw() < 0.7 else "")
    if i == plan.length - 1:
        return voice.close("t", plan.teacher, plan.mood)
    if i == plan.length - 2:
        nods = plan.mood == "good" and not is_grudging(heard)
        return join(say(find_praise(heard)) if nods else "", say(f"t.before.{plan.mood}"))
    if i == plan.turning and plan.course == "teacher_adapts":
        first = say("t.react.adapts") if draw() < 0.5 else ""
        return join(first, say("t.turn"), say(f"t.teach.{plan.wants}"))
    served = plan.wants if plan.course == "teacher_adapts" else plan.offers
    if i > plan.turning:
        nods = draw() < 0.65 and not is_grudging(heard)
        return join(say(find_praise(heard)) if nods else "", say(f"t.teach.{served}"))
    if i == 2 and draw() < 0.5:
        return join(say("t.press"), say(f"t.teach.{plan.offers}"))
    if plan.teacher == "adapts":  # willing, but not yet or not this time
        return join(say("t.press"), say(f"t.teach.{plan.offers}"))
    reaction = say(f"t.react.{plan.teacher}")
    if plan.teacher == phrase_kinds.OTHER:
        reaction = join(phrase_kinds.make_stage_direction(brief.teacher_reaction or ""), reaction)
    goes_on = plan.teacher != "gives_up" or i < plan.length // 2
    return join(reaction, say(f"t.teach.{plan.offers}") if goes_on and draw() < 0.7 else "")


def _write_student_turn(
    plan: DialoguePlan, brief: ScenarioBrief, i: int, voice: PhraseSpeaker, rng: Random
) -> str:
    """Return the student's entry `i`."""
    say, draw = voice.say, rng.random
    if i == plan.length - 1:
        return voice.close("s", plan.student, plan.mood)
    if i == plan.length - 2:
        return say(f"s.before.{plan.mood}")
    if i == 1 and plan.course == "harmony":
        return join(say("s.first.welcome"), say("s.first.more") if draw() < 0.3 else "")
    if i == plan.turning and plan.course == "student_adapts":
        return join(say("s.react.adapts"), say("s.insight") if draw() < 0.4 else "")
    if i > plan.turning:
        return _speak_served(plan, i, voice, rng)
    if i == 1:
        return join(say("s.first.doubt"), say(f"s.ask.{plan.wants}") if draw() < 0.75 else "")
    if plan.student == "adapts":  # willing, but not yet or not this time
        return say("s.confused") if draw() < 0.6 else join(say("s.prefer"), say(f"s.ask.{plan.wants}"))
    reaction = say(f"s.react.{plan.student}")
    if plan.student == phrase_kinds.OTHER:
        reaction = join(phrase_kinds.make_stage_direction(brief.student_reaction or ""), reaction)
    if draw() < 0.4:
        return join(reaction, say(f"s.ask.{plan.wants}") if draw() < 0.6 else say("s.prefer"))
    return reaction


def _speak_served(plan: DialoguePlan, i: int, voice: PhraseSpeaker, rng: Random) -> str:
    """Return the student's words once the lesson goes well."""
    say, u = voice.say, rng.random()
    method = plan.wants if plan.course != "student_adapts" else plan.offers
    if i == plan.turning + 1 and plan.course == "teacher_adapts":
        return join(say("s.warming"), say(f"s.enjoy.{method}") if u < 0.6 else "")
    if u < 0.2 + (0.5 - plan.probability) * 0.4:
        return say("s.confused")
    if u < 0.55:
        return say("s.insight")
    return join(say(f"s.enjoy.{method}"), say("s.insight") if u > 0.85 else "")


def render(spoken: Entries, probability: float | None, task: ConversationPrompt) -> str:
    """Render the answer in the requested layout, without a probability if it is None."""
    return as_published(spoken, probability) if task.form is None else task.form.render(spoken, probability)


def as_published(spoken: Entries, probability: float | None) -> str:
    """Render in the layout of the prompt published with the Education Dialogue data set."""
    out = ["Conversation:", "["]
    for role, text in spoken:
        quoted = text.replace('"', '\\"') if '"' in text else text
        out.append(f'   {role}:  "{quoted}",')
    out.append("]")
    if probability is not None:
        out.append(f'Probability:  "{probability}",')
    return "\n".join(out)
