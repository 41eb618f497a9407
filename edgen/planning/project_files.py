"""A project for a user's space: a job, a copy of the space, and plain templates with the dimensions written
out.

The templates have the text that `plain_conversation` and `plain_turn` would render, with variables such as
`{{ topic }}` in place of values, so that users can edit single lines. Other protocols' templates are copied
unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from edgen.config import parse_job
from edgen.core.values import Scenario
from edgen.core.yaml_text import as_key, as_text
from edgen.planning.allowed_files import allow_all_files
from edgen.planning.load import make_plan
from edgen.planning.plan import Plan
from edgen.prompting import Prompt
from edgen.protocols.base import Template
from edgen.protocols.parts import conversation_variables, is_worded, labels_of, make_turn_variables
from edgen.space import Dimension, Space, SpaceRole


def plan_for_space(name: str, protocol: str, space: Path) -> Plan:
    """Return the plan of a job with this protocol and only a space.

    Raises JobError, SpaceError or TemplateError if the space does not fit the protocol, or more settings are
    needed.
    """
    values = {
        "name": name,
        "seed": 7,
        "conversations": 40,
        "space": str(space.absolute()),
        "design": "even",
        "protocol": protocol,
        "backends": {"default": {"type": "simulator"}},
    }
    return make_plan(parse_job(values, f"of --protocol {protocol}"), allow_all_files())


def write_templates(plan: Plan) -> dict[str, str]:
    """Return the text of each template of a plan, by file name."""
    return {
        _name_file(use): _render_template(plan, use, template) for use, template in plan.templates.items()
    }


def write_job(plan: Plan, head: str) -> str:
    """Return the text of the plan's job file, which names the templates and the space next to it. `head`: the
    text's beginning."""
    job, templates = plan.job, plan.templates
    prompts = ", ".join(f"{as_key(use)}: ./{_name_file(use)}" for use in templates)
    asked = "prompt: ./prompt.j2" if [*templates] == ["default"] else f"prompts: {{{prompts}}}"
    return (
        f"{head}name: {as_key(job.name)}\nseed: {job.seed}\nconversations: {job.conversations}\nspace: "
        f"./space.yaml\ndesign: {job.design}\n"
        f"protocol: {job.protocol}\n{asked}\nbackends:\n  default: {{type: simulator}}\nsplit: {{test: "
        "0.15, by: scenario}\n"
    )


def _name_file(use: str) -> str:
    return "prompt.j2" if use == "default" else f"{use}.j2"


def _render_template(plan: Plan, use: str, template: Template) -> str:
    prompt = plan.prompts[use]
    if not prompt.variables_used.intersection(template.wholes):
        return prompt.text
    space = plan.space
    role = next((role for role in space.roles if role.name.lower() == use), None)
    seen = space.names if role is None else [name for name in space.names if name in role.sees]
    messages = prompt.messages(_stand_ins(space, role))
    body = messages[0].content
    if len(messages) > 1:
        blocks = [f"{{% block {one.role} %}}\n{one.content}\n{{% endblock %}}" for one in messages]
        body = "\n".join(blocks)
    return _render_head(prompt, role, space, seen) + body + "\n"


def _stand_ins(space: Space, role: SpaceRole | None) -> Mapping[str, Any]:
    """Return a template's variables, with placeholders in place of values."""
    scenario = Scenario(0, {one.name: _write_placeholder(one) for one in space.dimensions})
    labels = labels_of(space)
    if role is not None:
        return make_turn_variables(scenario, space.roles, role, labels)
    return conversation_variables(scenario, space.roles, labels, space.description or "")


def _write_placeholder(dimension: Dimension) -> str:
    """Return the placeholder of a dimension's value and its fields, in a template's syntax."""
    said = ""
    for field in dimension.fields:
        given = [entry.fields.get(field) for entry in dimension.entries]
        if not all(is_worded(value) for value in given):
            continue
        one = f"{dimension.name}.{field}"
        one = f'{one}|join(", ")' if any(isinstance(value, list) for value in given) else one
        label = field.replace("_", " ")
        if None in given:
            said += f'{{{{ " ({label}: " ~ {one} ~ ")" if {dimension.name}.{field} is defined else "" }}}}'
        else:
            said += f" ({label}: {{{{ {one} }}}})"
    return f"{{{{ {dimension.name} }}}}{said}"


def _render_head(prompt: Prompt, role: SpaceRole | None, space: Space, seen: Collection[str]) -> str:
    title = f"{space.name}: conversations" if role is None else f"{space.name}: the turns of {role.name}"
    unseen = "" if role is None else f"\nWhat {role.name} does not see is not to be had here."
    return (
        f"{{#\n---\nname: {as_text(title)}\nexpects: {prompt.front.expects}\n---\n"
        f"Written by `edgen init` from {prompt.name}, for the space {space.name}. It may use "
        f"{', '.join(seen) or 'no dimension'}.{unseen}\n#}}\n"
    )
