"""The JSON Schemas of job and space files, and docs/job.md, made from the types that edgen reads these files into.

python -m tests.schemas     writes them anew (make docs)

What a key means is the sentence under its field, in edgen/config and edgen/space. A schema says of one key what its type
says; what does not go together is for the loader. Editors know draft-07 best, so that is what they are written in.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import textwrap
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import Job
from edgen.config.backends import BackendConfig
from edgen.config.job import BACKEND_ROLES, MAX_ARMS, PROMPT_ROLES
from edgen.model import ROLES
from edgen.space import DIMENSIONS, MAX_ENTRIES, Entry, Space
from tests import job_page

ROOT = Path(__file__).resolve().parent.parent
VALIDATORS = ROOT / "validators"
PAGE = ROOT / "docs" / "job.md"
MADE = (VALIDATORS / "job.schema.json", VALIDATORS / "space.schema.json", PAGE)
_DRAFT = "http://json-schema.org/draft-07/schema#"
_Schema = dict[str, Any]


@functools.cache
def sentences(struct: type[msgspec.Struct]) -> dict[str, str]:
    """What each field of a struct means: the text that stands under it, its own classes' and those above."""
    found: dict[str, str] = {}
    for cls in reversed(struct.__mro__):
        if not issubclass(cls, msgspec.Struct) or cls is msgspec.Struct:
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(node, ast.ClassDef)
        for field, below in zip(node.body, node.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = text
    return found


def job_schema() -> _Schema:
    """The schema of a job file."""
    schema = _described(msgspec.json.schema(Job), {t.__name__: t for t in job_page.STRUCTS})
    parts = schema["definitions"]
    job = parts.pop("Job")
    keys = job["properties"]
    # Before it is read, a name may hold the day.
    keys["name"]["pattern"] = r"^([A-Za-z0-9]|\{date\})([A-Za-z0-9._-]|\{date\})*$"
    keys["prompts"] = _closed(
        keys["prompts"], dict.fromkeys(PROMPT_ROLES, keys["prompts"].pop("additionalProperties"))
    )
    keys["role_words"] = _closed(
        keys["role_words"], dict.fromkeys(ROLES, keys["role_words"].pop("additionalProperties"))
    )
    backend = keys["backends"].pop("additionalProperties")
    del backend["discriminator"]
    parts["Backend"] = _by_type(backend["anyOf"])
    parts["Part of a backend"] = _merged([parts[ref["$ref"].rsplit("/", 1)[1]] for ref in backend["anyOf"]])
    keys["backends"] = _closed(keys["backends"], dict.fromkeys(BACKEND_ROLES, _ref("Backend"))) | {
        "minProperties": 1
    }
    keys["arms"] |= {
        "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"},
        "maxProperties": MAX_ARMS,
        "additionalProperties": _closed({}, {key: keys[key] for key in job_page.IN_ARMS} | {
            "backends": _closed({}, dict.fromkeys(BACKEND_ROLES, _ref("Part of a backend"))),
        }),
    }  # fmt: skip
    job["allOf"] = [
        {
            "if": {"properties": {"protocol": {"const": "selfplay"}}, "required": ["protocol"]},
            "then": {
                "properties": {
                    "prompt": {"type": "null"},
                    "backends": {"anyOf": [{"required": ["default"]}, {"required": ["teacher", "student"]}]},
                }
            },
            "else": {
                "required": ["prompt"],
                "properties": {
                    "prompt": {"type": "string"},
                    "branch": {"type": "null"},
                    "backends": {"required": ["default"]},
                },
            },
        }
    ]
    return _whole("job", "A job of edgen: one YAML file that says what to make", job, parts)


def space_schema() -> _Schema:
    """The schema of a space file."""
    schema = _described(msgspec.json.schema(Space), {"Space": Space, "Entry": Entry})
    parts = schema["definitions"]
    space, entry = parts.pop("Space"), parts.pop("Entry")
    bad = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    line = {"type": "string", "pattern": rf"^(?!\s)[^{bad}]*[^\s{bad}]$"}
    for key in ("value", "subject", "level"):
        entry["properties"][key] |= line if key == "value" else {"anyOf": [line, {"type": "null"}]}
    entry["properties"]["weight"]["minimum"] = 0
    plain = {key: value for key, value in entry["properties"].items() if key not in ("subject", "level")}
    parts["Topic"] = {"anyOf": [line, entry]}
    parts["Entry"] = {"anyOf": [line, entry | {"properties": plain}]}
    space["properties"]["name"] |= line
    for key in DIMENSIONS:
        items = _ref("Topic" if key == "topics" else "Entry")
        space["properties"][key] |= {"items": items, "minItems": 1, "maxItems": MAX_ENTRIES}
    return _whole(
        "space", "A preference space of edgen: the vocabularies that scenarios are drawn from", space, parts
    )


def _whole(name: str, title: str, top: _Schema, parts: dict[str, _Schema]) -> _Schema:
    head = {"$schema": _DRAFT, "$id": f"urn:edgen:schema:{name}:1"}
    return head | top | {"title": title, "definitions": parts}


def _described(schema: _Schema, structs: dict[str, type[msgspec.Struct]]) -> _Schema:
    """msgspec's schema as editors want it: closed, with a sentence a key, with patterns that any engine reads."""
    text = json.dumps(schema).replace("#/$defs/", "#/definitions/").replace('\\\\Z"', '$"')
    parts = json.loads(text)["$defs"]
    for name, part in parts.items():
        part["description"] = " ".join(part["description"].split())
        part["additionalProperties"] = False
        for key, value in part["properties"].items():
            if key in structs[name].__struct_fields__:
                part["properties"][key] = {
                    "description": sentences(structs[name]).get(key, ""),
                    **_alone(value),
                }
    return {"definitions": parts}


def _alone(value: _Schema) -> _Schema:
    """A reference stands alone in draft-07: what is beside it is not read."""
    if "$ref" not in value:
        return value
    return {"allOf": [{"$ref": value["$ref"]}], **{key: v for key, v in value.items() if key != "$ref"}}


def _ref(name: str) -> _Schema:
    return {"$ref": f"#/definitions/{name}"}


def _closed(base: _Schema, properties: dict[str, Any]) -> _Schema:
    return {"type": "object", **base, "properties": properties, "additionalProperties": False}


def _by_type(kinds: list[_Schema]) -> _Schema:
    """One of several structs, told apart by `type`: an editor then names what is wrong with the one that is meant."""
    tags = {struct.__struct_config__.tag: struct.__name__ for struct in BackendConfig.__args__}
    assert len(tags) == len(kinds)
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"description": "What kind of service it is.", "enum": list(tags)}},
        "allOf": [
            {"if": {"properties": {"type": {"const": tag}}, "required": ["type"]}, "then": _ref(name)}
            for tag, name in tags.items()
        ],
    }


def _merged(kinds: list[_Schema]) -> _Schema:
    """Any of their keys, none of them required: an arm may change one key of a backend."""
    properties: dict[str, Any] = {}
    for kind in kinds:
        for key, value in kind["properties"].items():
            properties.setdefault(key, value if value == kind["properties"][key] else {})
            if properties[key] != value and key != "type":
                properties[key] = {"description": value["description"]}
    properties["type"] = {"enum": [struct.__struct_config__.tag for struct in BackendConfig.__args__]}
    return _closed({}, properties)


def made(path: Path) -> str:
    """The text of one of the files that are MADE."""
    if path == PAGE:
        return job_page.page(sentences)
    schema = job_schema() if path.name.startswith("job") else space_schema()
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    for path in MADE:
        path.write_text(made(path), encoding="utf-8")
