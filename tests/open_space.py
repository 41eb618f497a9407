"""A space with custom dimensions and roles, and templates for it."""

from __future__ import annotations

from pathlib import Path

import yaml

from edgen.space import Dimension, Entry, Space, SpaceRole

TOPICS = (Entry("Adding fractions", fields={"grade": 4}), Entry("Comparing fractions", fields={"grade": 3}))


def tutoring(roles: int = 2, more: int = 0) -> Space:
    """Return a space of a tutor and one or two learners; `more` dimensions are visible to the tutor alone."""
    tutors = [f"aim_{number}" for number in range(more)]
    dimensions = (
        Dimension("topic", TOPICS),
        Dimension(
            "misconception",
            (Entry("adds numerators and denominators"), Entry("bigger denominator, bigger fraction")),
        ),
        Dimension("learner", (Entry("painfully shy at first"), Entry("talkative and quick"))),
        Dimension("tutor_style", (Entry("Socratic questions only"), Entry("direct worked examples"))),
        *(Dimension(name, (Entry(f"{name} one"), Entry(f"{name} two"))) for name in tutors),
    )
    cast = (
        SpaceRole("Tutor", ("topic", "tutor_style", *tutors)),
        SpaceRole("Learner", ("topic", "misconception", "learner")),
        SpaceRole("Learner2", ("topic", "learner")),
    )
    return Space(name="fractions", dimensions=dimensions, roles=cast[:roles])


def template(role: SpaceRole, others: str) -> str:
    """Return a template that shows all facts that the role sees."""
    shown = "\n".join(f"- {name}: {{{{ {name} }}}}" for name in role.sees)
    return (
        f"{{% block system %}}\nYou are {role.name}, in a conversation with {others}.\n{shown}\n"
        f"Say only what {role.name} says next. The conversation takes 6 to 9 turns in all; when you want to close it, "
        "end your last turn with [end of conversation].\n{% endblock %}\n"
        "{% block user %}\nThe conversation begins.\n{% endblock %}\n"
    )


def write(folder: Path, space: Space, **job: object) -> Path:
    """Write a job by selfplay with its space and a template for each role; return the job's path."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = {
        "name": space.name,
        "dimensions": {
            one.name: [{"value": e.value, **e.fields} if e.fields else e.value for e in one.entries]
            for one in space.dimensions
        },
        "roles": {role.name: {"sees": [*role.sees]} for role in space.roles},
    }
    (folder / "space.yaml").write_text(yaml.safe_dump(plain, sort_keys=False))
    for role in space.roles:
        others = " and ".join(other.name for other in space.roles if other is not role)
        (folder / f"{role.name.lower()}.j2").write_text(template(role, others))
    values = {
        "name": "fractions",
        "seed": 3,
        "conversations": 6,
        "space": "./space.yaml",
        "protocol": "selfplay",
        "prompts": {role.name.lower(): f"./{role.name.lower()}.j2" for role in space.roles},
        "backends": {"default": {"type": "simulator"}},
        **job,
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    return path
