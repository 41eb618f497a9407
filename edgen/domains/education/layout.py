"""The layout of Education Dialogue's spaces: five lists of texts, for a teacher and a student."""

from __future__ import annotations

from collections.abc import Mapping

from edgen.plugin.spaces import Agreement, LaidOutDimension, SpaceLayout

# Optional fields of a topic.
TOPIC_FIELDS: Mapping[str, str] = {
    "subject": "The school subject of a topic.",
    "level": "The level of a topic.",
}


def _prefer_same(values: Mapping[str, str]) -> bool | None:
    """Return whether both sides prefer the same way; None if a way is of no known kind."""
    from edgen.reading.phrase_kinds import MOST, do_preferences_match

    return do_preferences_match(values["student_preference"][:MOST], values["teacher_preference"][:MOST])


LAYOUT = SpaceLayout(
    name="education",
    title="Education Dialogue's five lists",
    dimensions=(
        LaidOutDimension(name="topic", list="topics", help="The topics of lessons.", fields=TOPIC_FIELDS),
        LaidOutDimension(
            name="student_preference",
            list="student_preferences",
            help="The student's preferred ways of learning.",
            shown="student prefers",
            leaks="parts",
        ),
        LaidOutDimension(
            name="student_reaction",
            list="student_reactions",
            help="The student's reactions to other ways.",
            shown="otherwise",
            leaks="clause",
        ),
        LaidOutDimension(
            name="teacher_preference",
            list="teacher_preferences",
            help="The teacher's preferred ways of teaching.",
            shown="teacher prefers",
            leaks="parts",
        ),
        LaidOutDimension(
            name="teacher_reaction",
            list="teacher_reactions",
            help="The teacher's reactions to other ways.",
            shown="otherwise",
            leaks="clause",
        ),
    ),
    roles={
        "Teacher": ("topic", "teacher_preference", "teacher_reaction"),
        "Student": ("topic", "student_preference", "student_reaction"),
    },
    strata=(
        ("student_preference", "teacher_preference"),
        ("student_reaction", "teacher_reaction"),
        ("topic",),
    ),
    groups={
        "persona": ("student_preference", "student_reaction", "teacher_preference", "teacher_reaction"),
    },
    phrases={
        "student_prefers": ("student_preference", "student_reaction"),
        "teacher_prefers": ("teacher_preference", "teacher_reaction"),
    },
    agreement=Agreement(_prefer_same, "the two prefer the same way", "the two prefer different ways"),
    templates={"teacher": "selfplay_teacher", "student": "selfplay_student"},
    simulated=True,
)
# A dimension -> the key of ED's `background_info` with its values: in ED's spelling first, then in the
# correct one.
BACKGROUND_KEYS = {
    "topic": ("topic",),
    "student_preference": ("student_prefrences", "student_preferences"),
    "student_reaction": ("student_reactions",),
    "teacher_preference": ("teacher_prefrences", "teacher_preferences"),
    "teacher_reaction": ("teacher_reactions",),
}
DIMENSIONS = tuple(one.name for one in LAYOUT.dimensions)
