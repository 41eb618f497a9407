"""A server that accepts a JSON Schema in each provider's own form only, and obeys it.

The forms are those of the SDKs openai 3.52, google-genai and anthropic 2.12. The refused schemas follow each
provider's documentation, and the words of refusals are shortened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from random import Random
from typing import Any

from edgen.simulator.schemas.structured import fit_to_schema, read_schema
from tests.json_server import serving_json

_NO_CONSTRAINTS = {"minimum", "maximum", "minLength", "maxLength", "multipleOf"}


class RefusedError(Exception):
    """The service's message about an invalid request."""


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all schemas of objects in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def _openai(form: Any, within: str) -> Any:
    said = form if within == "text.format" else form.get("json_schema")
    if form.get("type") != "json_schema" or not {"name", "schema", "strict"} <= said.keys():
        raise RefusedError(f"Missing required parameter: '{within}.name'.")
    if extra := said.keys() - {"type", "name", "schema", "strict", "description"}:
        raise RefusedError(f"Unknown parameter: '{within}.{min(extra)}'.")
    for one in objects(said["schema"]) if said["strict"] else ():
        if one.get("additionalProperties") is not False:
            raise RefusedError("'additionalProperties' is required to be supplied and to be false.")
        if set(one.get("required", ())) != set(one.get("properties", {})):
            raise RefusedError(
                "'required' is required to be supplied and to be an array including every key."
            )
    return said["schema"]


def chat(body: Any) -> Any:
    if extra := body.keys() - {"model", "messages", "max_tokens", "response_format"}:
        raise RefusedError(f"Unrecognized request argument supplied: {min(extra)}")
    return (
        _openai(body["response_format"], "response_format.json_schema") if "response_format" in body else None
    )


def responses(body: Any) -> Any:
    if extra := body.keys() - {"model", "input", "store", "max_output_tokens", "text"}:
        raise RefusedError(f"Unknown parameter: '{min(extra)}'.")
    return _openai(body["text"]["format"], "text.format") if "text" in body else None


def gemini(body: Any) -> Any:
    generation = body.get("generationConfig", {})
    if extra := generation.keys() - {"maxOutputTokens", "responseMimeType", "responseJsonSchema"}:
        raise RefusedError(f"Unknown name \"{min(extra)}\" at 'generation_config': Cannot find field.")
    if "responseJsonSchema" in generation and generation.get("responseMimeType") != "application/json":
        raise RefusedError(
            "A response schema is only supported with the response mime type 'application/json'."
        )
    if "$schema" in generation.get("responseJsonSchema", {}):
        raise RefusedError("Unsupported keyword: $schema")
    return generation.get("responseJsonSchema")


def anthropic(body: Any) -> Any:
    output = body.get("output_config", {})
    if extra := (body.keys() - {"model", "messages", "max_tokens", "output_config"}) | (
        output.keys() - {"format"}
    ):
        raise RefusedError(f"{min(extra)}: Extra inputs are not permitted")
    form = output.get("format")
    if form is None:
        return None
    if form.keys() != {"type", "schema"} or form["type"] != "json_schema":
        raise RefusedError("output_config.format: Extra inputs are not permitted")
    for one in objects(form["schema"]):
        if one.get("additionalProperties") is not False:
            raise RefusedError(
                "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
    if found := sorted(_NO_CONSTRAINTS & set(_keys(form["schema"]))):
        raise RefusedError(f"output_config.format.schema: property '{found[0]}' is not supported")
    return form["schema"]


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(inner)


def _answer(path: str, text: str) -> Any:
    if path.endswith("chat/completions"):
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "model": "m"}
    if path.endswith("responses"):
        part = {"type": "output_text", "text": text}
        return {"status": "completed", "output": [{"type": "message", "content": [part]}]}
    if path.endswith("messages"):
        return {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}


def _error(path: str, words: str) -> Any:
    if path.endswith("messages"):
        return {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    if path.endswith("generateContent"):
        return {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": words}}
    return {"error": {"type": "invalid_request_error", "message": words}}


class SchemaServer:
    """A server for schemas. `refuses`: its message to any schema; None: it obeys. `ignores`: it accepts
    schemas and ignores them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.refuses: str | None = None
        self.ignores = False
        self.bodies: list[Any] = []

    def says(self, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and the body of the answer to a request."""
        self.bodies.append(body)
        readers = {"completions": chat, "responses": responses, "messages": anthropic}
        try:
            schema = readers.get(path.rpartition("/")[2], gemini)(body)
            if schema is not None and self.refuses is not None:
                raise RefusedError(self.refuses)
        except RefusedError as refused:
            return 400, _error(path, str(refused))
        if schema is None or self.ignores:
            return 200, _answer(path, "Hello!")
        rng = Random(len(self.bodies))
        return 200, _answer(path, fit_to_schema("", read_schema(schema), rng))


@contextlib.contextmanager
def serving_schemas() -> Iterator[SchemaServer]:
    """Run the server on a free port of this machine; yield it."""
    with serving_json(lambda path, body: server.says(path, body)) as url:
        server = SchemaServer(url)
        yield server
