"""The JSON Schemas of job, space and label set files, and docs/job.md, made from the types of these files.

python -m tests.schemas writes them anew (make docs).

The text of a key is the sentence under its field, in edgen/config and edgen/space. A schema states of one key
what its type states; the loader checks combinations. Editors support draft-07 best, so the schemas are
written in it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import operator
import textwrap
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from edgen.config import Job
from edgen.config.backends import BackendConfig
from edgen.config.job import MAX_ARMS
from edgen.config.label_set import MOST_LABELS, LabelDefinition, LabelSet
from edgen.core import registry
from edgen.core.options import find_option
from edgen.core.space_layouts import list_layouts
from edgen.space.entries import MAX_DIMENSIONS, MAX_ENTRIES
from edgen.space.knowledge import FILE_NAME
from edgen.space.model import find_section, list_section_names
from edgen.space.parse import MAX_EXCLUDED, MAX_ROLES, Head, OpenSpace
from tests import ROOT, job_page

VALIDATORS = ROOT / "validators"
PAGE = ROOT / "docs" / "job.md"
MADE = (*(VALIDATORS / f"{kind}.schema.json" for kind in ("job", "space", "label_set")), PAGE)
_DRAFT = "http://json-schema.org/draft-07/schema#"
_Schema = dict[str, Any]
# The settings of every shipped provider that a job file can name.
KINDS: tuple[type[BackendConfig], ...] = tuple(
    registry.find("provider", plugin.name).Config
    for plugin in registry.list_plugins()
    if (plugin.kind, plugin.package) == ("provider", registry.DISTRIBUTION) and plugin.name != "function"
)


@functools.cache
def sentences(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return a sentence for each field of a struct: its option's, and the text below it.

    Fields of base classes are included.
    """
    said = {name: find_option(hint) for name, hint in get_type_hints(struct, include_extras=True).items()}
    found: dict[str, str] = {name: one.sentence for name, one in said.items() if one is not None}
    for cls in reversed(struct.__mro__):
        if not issubclass(cls, msgspec.Struct) or cls is msgspec.Struct:
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(node, ast.ClassDef)
        for field, below in zip(node.body, node.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    key = " ".join(text.split())
                    found[name] = key if said[name] is None else f"{said[name].sentence} {key}"
    return found


def _job() -> _Schema:
    """Return msgspec's schema of a job, with the structs of the shipped providers in place of their base."""
    job, backends = (
        msgspec.json.schema(Job),
        msgspec.json.schema(dict[str, functools.reduce(operator.or_, KINDS)]),
    )
    job["$defs"]["Job"]["properties"]["backends"]["additionalProperties"] = backends["additionalProperties"]
    del job["$defs"]["BackendConfig"], job["$defs"]["Price"]
    job["$defs"] |= backends["$defs"]
    return job


def job_schema() -> _Schema:
    """Return the schema of a job file."""
    schema = _described(_job(), {t.__name__: t for t in job_page.STRUCTS})
    parts = schema["definitions"]
    job = parts.pop("Job")
    keys = job["properties"]
    del keys["protocol_settings"], keys["speakers"]
    for name, struct in job_page.PROTOCOLS.items():
        if not struct.__struct_fields__:
            continue
        known = {t.__name__: t for t in job_page.STRUCTS}
        own = _described(msgspec.json.schema(struct), known | {struct.__name__: struct})["definitions"]
        parts |= own
        keys[name] = {"description": f"What goes with `protocol: {name}`.", **_alone(_ref(struct.__name__))}
    keys["protocol"] = {key: value for key, value in keys["protocol"].items() if key != "minLength"}
    keys["protocol"]["enum"] = [*job_page.PROTOCOLS]
    keys["protocol"]["description"] += "".join(
        f" `{name}`: {text}" for name, text in job_page.SUMMARIES.items()
    )
    # Before it is read, a name may contain the day.
    keys["name"]["pattern"] = r"^([A-Za-z0-9]|\{date\})([A-Za-z0-9._-]|\{date\})*$"
    # The space defines the names of roles: an editor accepts any.
    prompt = keys["prompts"]["additionalProperties"]
    keys["prompts"]["properties"] = dict.fromkeys(("teacher", "student", "closing", "oracle"), prompt)
    backend = keys["backends"].pop("additionalProperties")
    del backend["discriminator"]
    parts["Backend"] = _by_type(backend["anyOf"])
    parts["Part of a backend"] = _merged([parts[ref["$ref"].rsplit("/", 1)[1]] for ref in backend["anyOf"]])
    keys["backends"] = _of_roles(keys["backends"], "Backend") | {"minProperties": 1}
    keys["arms"] |= {
        "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"},
        "maxProperties": MAX_ARMS,
        "additionalProperties": _closed({}, {key: keys[key] for key in job_page.IN_ARMS} | {
            "backends": _of_roles({"type": "object"}, "Part of a backend"),
        }),
    }  # fmt: skip
    job["allOf"] = [
        {
            "if": {
                "properties": {"protocol": {"enum": [n for n in job_page.PROTOCOLS if n != "oneshot"]}},
                "required": ["protocol"],
            },
            "then": {
                "properties": {
                    "prompt": {"type": "null"},
                }
            },
            "else": {
                "properties": {
                    "prompt": {"type": ["string", "null"]},
                    "branch": {"type": "null"},
                    "backends": {"required": ["default"]},
                },
            },
        }
    ]
    return _whole("job", "A job of edgen: one YAML file that says what to make", job, parts)


def space_schema() -> _Schema:
    """Return the schema of a space file: the lists of a layout, or custom dimensions."""
    bad = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    line = {"type": "string", "pattern": rf"^(?!\s)[^{bad}]*[^\s{bad}]$"}
    name = {"pattern": "^[A-Za-z][A-Za-z0-9_]{0,39}$"}
    said = sentences(OpenSpace)
    value = {
        "value": {"description": "The exact text of the value in a scenario.", **line},
        "weight": {"description": "How often it is drawn, relative to the others of its list, where the design is random.", "type": "number", "minimum": 0, "default": 1},
    }  # fmt: skip
    when = {
        "when": {"description": "The values of other dimensions that it occurs with.", **_ref("Combination")}
    }
    closed = {"type": "object", "required": ["value"], "additionalProperties": False}
    parts: dict[str, _Schema] = {
        **_entries_with_fields(line, closed, value),
        "ListedEntry": {"anyOf": [line, closed | {"properties": value}]},
        "Entry": {
            "anyOf": [
                line,
                {
                    "type": "object",
                    "required": ["value"],
                    "properties": value | {"when": _alone(when["when"])},
                    "propertyNames": name,
                    "additionalProperties": {"type": ["string", "number", "boolean", "array", "object"]},
                },
            ]
        },
        "Entries": {"type": "array", "items": _ref("Entry"), "minItems": 1, "maxItems": MAX_ENTRIES},
        "Combination": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": name,
            "additionalProperties": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
            },
        },
    }
    head = {key: {"description": said[key]} for key in Head.__struct_fields__}
    head["name"] |= line
    head["duplicates"] |= {"enum": ["refuse", "keep"], "default": "refuse"}
    for key in ("description", "source"):
        head[key] |= {"type": ["string", "null"], "default": None}
    layouts = [
        {one.list: {"description": one.help, "type": "array", "items": _ref(one.name.capitalize() if one.fields else "ListedEntry"), "minItems": 1, "maxItems": MAX_ENTRIES} for one in layout.dimensions}
        for layout in list_layouts()
    ]  # fmt: skip
    lists = {key: schema for listed in layouts for key, schema in listed.items()}
    own = _own_dimensions(said, name)
    parts |= _sections()
    top = {
        "type": "object",
        "properties": head | lists | own,
        "additionalProperties": False,
        "required": ["name"],
        "anyOf": [
            {"required": ["dimensions"], "properties": dict.fromkeys(lists, False)},
            *(
                {
                    "required": list(listed),
                    "properties": dict.fromkeys(
                        [key for key in own if key not in list_section_names()], False
                    ),
                }
                for listed in layouts
            ),
        ],
    }
    return _whole(
        "space", "A preference space of edgen: the vocabularies that scenarios are drawn from", top, parts
    )


def _entries_with_fields(line: _Schema, closed: _Schema, value: _Schema) -> _Schema:
    """Return the entries of lists whose entries may state more than their value, by name."""
    return {
        one.name.capitalize(): {
            "anyOf": [
                line,
                closed
                | {
                    "properties": value
                    | {
                        key: {"description": text, "anyOf": [line, {"type": "null"}]}
                        for key, text in one.fields.items()
                    }
                },
            ]
        }
        for layout in list_layouts()
        for one in layout.dimensions
        if one.fields
    }


def label_set_schema() -> _Schema:
    """Return the schema of a label set."""
    structs = {struct.__name__: struct for struct in (LabelSet, LabelDefinition)}
    parts: dict[str, _Schema] = _described(msgspec.json.schema(LabelSet), structs)["definitions"]
    top = parts.pop("LabelSet")
    top["properties"]["labels"]["maxItems"] = MOST_LABELS
    top["anyOf"] = [
        {"properties": {"labels": {"minItems": 2}}},
        {"required": ["other"], "properties": {"other": {"type": "string"}, "labels": {"minItems": 1}}},
    ]
    return _whole(
        "label_set", "A label set of edgen: what turns or conversations can be labelled with", top, parts
    )


def _own_dimensions(said: dict[str, str], name: _Schema) -> _Schema:
    """Return the keys of a space file with its own dimensions."""
    labelled = {
        "type": "object",
        "required": ["values"],
        "properties": {"values": _ref("Entries"), "label": {"type": ["string", "null"]}},
        "additionalProperties": False,
    }
    role = {
        "type": "object",
        "required": ["sees"],
        "properties": {"sees": {"type": "array", "items": {"type": "string"} | name}},
        "additionalProperties": False,
    }
    return {
        "dimensions": {
            "description": said["dimensions"],
            "type": "object",
            "minProperties": 1,
            "maxProperties": MAX_DIMENSIONS,
            "propertyNames": name,
            "additionalProperties": {"anyOf": [_ref("Entries"), labelled]},
        },
        "roles": {
            "description": said["roles"],
            "type": ["object", "null"],
            "minProperties": 2,
            "maxProperties": MAX_ROLES,
            "propertyNames": name,
            "additionalProperties": role,
        },
        "exclude": {
            "description": said["exclude"],
            "type": ["array", "null"],
            "maxItems": MAX_EXCLUDED,
            "items": _ref("Combination"),
        },
        **{
            name: {
                "description": find_section(name).help,
                "anyOf": [_ref(find_section(name).root), {"type": "null"}],
            }
            for name in list_section_names()
        },
        "knowledge": {
            "description": said["knowledge"],
            "type": ["string", "null"],
            "pattern": FILE_NAME,
        },
    }


def _sections() -> dict[str, _Schema]:
    """Return the definitions of the sections that domains add."""
    found: dict[str, _Schema] = {}
    for name in list_section_names():
        structs = {struct.__name__: struct for struct in find_section(name).structs}
        root = next(
            struct for struct in find_section(name).structs if struct.__name__ == find_section(name).root
        )
        parts: dict[str, _Schema] = _described(msgspec.json.schema(root), structs)["definitions"]
        find_section(name).widen(parts)
        found |= parts
    return found


def _whole(name: str, title: str, top: _Schema, parts: dict[str, _Schema]) -> _Schema:
    head = {"$schema": _DRAFT, "$id": f"urn:edgen:schema:{name}:1"}
    return head | top | {"title": title, "definitions": parts}


def _described(schema: _Schema, structs: dict[str, type[msgspec.Struct]]) -> _Schema:
    """Return msgspec's schema adapted for editors.

    It is closed, with a sentence a key, and with patterns that any engine reads.
    """
    text = json.dumps(schema).replace("#/$defs/", "#/definitions/").replace('\\\\Z"', '$"')
    parts = json.loads(text)["$defs"]
    for name, part in parts.items():
        part["description"] = " ".join(part["description"].split())
        part["additionalProperties"] = False
        for key, value in part["properties"].items():
            if key in structs[name].__struct_fields__:
                if key in getattr(structs[name], "LISTS", ()):
                    node: _Schema = {"const": "node-local"}
                    value = {"anyOf": [value, node, {"type": "array", "minItems": 1, "items": value}]}
                for one in (value, *value.get("anyOf", ())):
                    one.pop("description", None)  # an option's, with the default of the command line
                part["properties"][key] = {
                    "description": sentences(structs[name]).get(key, ""),
                    **_alone(value),
                }
    return {"definitions": parts}


def _alone(value: _Schema) -> _Schema:
    """Return a schema in which references stand alone: draft-07 ignores keys next to a reference."""
    if "$ref" not in value:
        return value
    return {"allOf": [{"$ref": value["$ref"]}], **{key: v for key, v in value.items() if key != "$ref"}}


def _ref(name: str) -> _Schema:
    return {"$ref": f"#/definitions/{name}"}


def _of_roles(base: _Schema, part: str) -> _Schema:
    """Return a mapping from roles, those of every space listed for completion."""
    known = dict.fromkeys(("default", "teacher", "student", "judge"), _ref(part))
    return base | {"properties": known, "additionalProperties": _ref(part)}


def _closed(base: _Schema, properties: dict[str, Any]) -> _Schema:
    return {"type": "object", **base, "properties": properties, "additionalProperties": False}


def _by_type(kinds: list[_Schema]) -> _Schema:
    """Return a schema of one of several structs, distinguished by `type`.

    An editor then reports the problems of the intended struct.
    """
    tags = {struct.__struct_config__.tag: struct.__name__ for struct in KINDS}
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
    """Return a schema of any of their keys, none of them required: an arm may change one key of a backend."""
    properties: dict[str, Any] = {}
    for kind in kinds:
        for key, value in kind["properties"].items():
            properties.setdefault(key, value if value == kind["properties"][key] else {})
            if properties[key] != value and key != "type":
                properties[key] = {"description": value["description"]}
    properties["type"] = {"enum": [struct.__struct_config__.tag for struct in KINDS]}
    return _closed({}, properties)


def made(path: Path) -> str:
    """Return the text of one of the files that are MADE."""
    if path == PAGE:
        return job_page.page(sentences)
    kinds = {"job": job_schema, "space": space_schema, "label_set": label_set_schema}
    return json.dumps(kinds[path.name.partition(".")[0]](), indent=2) + "\n"


if __name__ == "__main__":
    for path in MADE:
        path.write_text(made(path), encoding="utf-8")
