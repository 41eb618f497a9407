"""People who play in a run: their roles, and the texts and questionnaires around the conversations.

A form is a text to agree to, or a questionnaire. The text is stored with the agreement; if the text changes,
people are asked again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from edgen.config import find_backend, list_arm_jobs, list_asked_roles, load_job, with_speakers
from edgen.core.people.requests import PersonRequest, View
from edgen.core.values import Address
from edgen.core.yaml_values import read_text
from edgen.protocols.questionnaire import QuestionnaireError, load_questionnaire
from edgen.providers.human.config import HumanConfig
from edgen.space import load_space
from edgen.store.people import People, UnitAnswer
from edgen.store.run_folder import RunFolder

CONSENT, BEFORE, AFTER = "consent", "before", "after"


class PlayerForm(NamedTuple):
    """A form for a person. `name`: `consent`, `before` or `after`; `unit` names the form among the person's
    answers. `text` is the text of a consent, `request` a questionnaire."""

    name: str
    unit: str
    text: str = ""
    request: PersonRequest | None = None

    @property
    def shown(self) -> Any:
        """The text, or the questions in order, as stored with the answer."""
        if self.request is None:
            return self.text
        return {"name": self.request.key, "questions": dict(self.request.view.questions)}

    def name_form(self, role: str, person: str) -> str:
        """Return the name of the form's page; one answer is stored per page."""
        digest = hashlib.sha256(repr(self.shown).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return f"{make_task_name(role)}/{self.unit}/{person}/{digest}"


def make_task_name(role: str) -> str:
    """Return the name of the task to which people are invited to play a role."""
    return f"play {role}"


def find_role(task: str) -> str | None:
    """Return the role that people play in a task; None for other tasks."""
    word, _, role = task.partition(" ")
    return role if word == "play" else None


def find_players(run: Path) -> dict[str, HumanConfig]:
    """Return the settings of the roles that people play in the conversations of a run and its arms, by role;
    empty for a folder without a job. Raises EdgenError for a job or a space that cannot be read."""
    folder, found = RunFolder(run), {}
    if not folder.job.exists():
        return {}
    space = folder.inputs / "space.yaml"
    speakers = [role.name for role in load_space(space).roles] if space.exists() else []
    for arm_job in list_arm_jobs(load_job(folder.job), str(folder.job)).values():
        one = with_speakers(arm_job, speakers) if speakers else arm_job
        for role in list_asked_roles(one):
            if isinstance(config := find_backend(one, role), HumanConfig):
                found[role] = config
    return found


def find_form_before(config: HumanConfig, answered: Mapping[str, UnitAnswer]) -> PlayerForm | None:
    """Return a person's next form before the first conversation; None if none is left. `answered`: the
    person's answers that count, by unit."""
    if config.consent is not None:
        paper = PlayerForm(CONSENT, CONSENT, read_text(Path(config.consent), QuestionnaireError))
        if CONSENT not in answered or answered[CONSENT].shown != paper.shown:
            return paper
    if config.before is not None and BEFORE not in answered:
        return _make_form(config.before, BEFORE, BEFORE)
    return None


def find_form_after(config: HumanConfig, answered: Mapping[str, UnitAnswer], game: str) -> PlayerForm | None:
    """Return the form after a conversation, whose token is `game`; None if none is left."""
    unit = f"{AFTER} {game}"
    if config.after is None or unit in answered:
        return None
    return _make_form(config.after, AFTER, unit)


def _make_form(path: str, name: str, unit: str) -> PlayerForm:
    asked = load_questionnaire(Path(path))
    questions = tuple((item.name, f"{item.text}{item.ends}") for item in asked.items)
    view = View(text=asked.description or "", questions=questions)
    request = PersonRequest(asked.name, Address(0, 0), "", view, asked.answer_form.schema)
    return PlayerForm(name, unit, request=request)


def read_person_answers(people: People | None, role: str, person: str) -> dict[str, UnitAnswer]:
    """Return the answers that count of a person who plays a role, by unit."""
    if people is None:
        return {}
    return {unit: one for (unit, _), one in people.read_latest_answers(make_task_name(role), person).items()}
