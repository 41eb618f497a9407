"""Anthropic's Message Batches: requests in one body, batches without names, results as JSON lines.

Source: Anthropic's API reference (Message Batches) and the types of its Python SDK 2.12. All counts stay
under `processing` until a batch has ended. Invalid `params` fail their own request; an invalid `custom_id`
refuses the whole batch. Limits of a batch: 100,000 requests, 256 MB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec

from edgen.simulator.service.anthropic import MESSAGES
from edgen.simulator.service.batch_server import (
    BatchServer,
    Operation,
    Place,
    cut_page,
    read_limit,
    save,
)
from edgen.simulator.service.batches import ENDED, Checked, Creation, File, SimulatedBatch, State
from edgen.simulator.service.dialect import BadCall, Refusal, decode, encode

MOST_REQUESTS = 100_000
MOST_BYTES = 256 * 1000 * 1000
_MOST_LISTED = 1000
_TOO_LARGE = BadCall(f"A batch takes {MOST_BYTES} bytes at most.", status=413)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class _Line(msgspec.Struct):
    name: str = msgspec.field(name="custom_id")
    body: msgspec.Raw = msgspec.field(name="params")


class _Create(msgspec.Struct, forbid_unknown_fields=True):
    requests: list[_Line]


_CREATE = msgspec.json.Decoder(_Create)
_STATES: dict[State, str] = {"cancelling": "canceling", **dict.fromkeys(ENDED, "ended")}
_UNANSWERED: dict[State, str] = {"cancelled": "canceled", "expired": "expired"}


class AnthropicBatchServer(BatchServer):
    """Anthropic's batches: a custom id and `params` in, a custom id and a result out."""

    dialect = MESSAGES
    paths = (r"/v1/messages/(?P<kind>batches)(?:/(?P<id>[^/]+))?(?:/(?P<action>cancel|results))?",)
    operations: ClassVar = {
        "POST batches": "create",
        "GET batches": "list",
        "GET batches/*": "describe",
        "GET batches/*/results": "download",
        "POST batches/*/cancel": "cancel",
        "DELETE batches/*": "delete",
    }
    deleted: ClassVar = {"type": "message_batch_deleted"}
    line = msgspec.json.Decoder(_Line)
    no_stream = "stream: a request of a batch cannot be streamed"
    batch_id, result_id = "msgbatch_", "results_"

    def check(self, batch: SimulatedBatch, lines: Iterable[bytes]) -> Checked:  # noqa: ARG002
        return Checked(sum(1 for _ in lines), "", [])

    def render_answer(self, name: str, body: bytes) -> bytes:
        return _render_result(name, "succeeded", message=msgspec.Raw(body))

    def render_refusal(self, name: str, refusal: Refusal) -> bytes:
        return _render_result(name, "errored", error=msgspec.Raw(refusal.body))

    def render_unanswered(self, name: str, state: State) -> bytes:
        return _render_result(name, _UNANSWERED[state])

    def make_missing_error(self, place: Place) -> BadCall:
        return BadCall(f"There is no message batch '{place.id}'.", status=404)

    def check_operation(self, operation: Operation, item: File | SimulatedBatch) -> None:
        assert isinstance(item, SimulatedBatch)
        ended = item.state in ENDED
        if operation == "cancel" and ended:
            raise BadCall(f"{item.id} has ended, and cannot be canceled.")
        if operation == "delete" and not ended:
            raise BadCall(f"{item.id} has not ended; cancel it first.")
        if operation == "download" and item.output is None:
            raise BadCall(f"{item.id} has no results yet.", status=404)

    def describe(self, item: File | SimulatedBatch, place: Place) -> dict[str, Any]:
        assert isinstance(item, SimulatedBatch)
        total, ended = item.facts["total"], item.state in ENDED
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        if ended:
            counts |= {"succeeded": item.completed, "errored": item.failed}
            counts[_UNANSWERED.get(item.state, "errored")] += total - item.done
        else:
            counts["processing"] = total
        url = f"{place.request.scheme}://{place.request.host}/v1/messages/batches/{item.id}/results"
        return {
            "id": item.id,
            "type": "message_batch",
            "processing_status": _STATES.get(item.state, "in_progress"),
            "request_counts": counts,
            "created_at": _format_moment(item.created),
            "expires_at": _format_moment(item.created + item.window),
            "ended_at": _format_moment(item.stamps[item.state]) if ended else None,
            "cancel_initiated_at": _format_moment(item.stamps.get("cancelling")),
            "archived_at": None,
            "results_url": url if item.output is not None else None,
        }

    def list_page(self, items: list[Any], place: Place) -> dict[str, Any]:
        """Return a page of batches: the ones after `after_id`, or right before `before_id`."""
        query = place.request.query
        limit = read_limit(query.get("limit", "20")) or 0
        if not 1 <= limit <= _MOST_LISTED:
            raise BadCall(f"limit: a number between 1 and {_MOST_LISTED} is expected")
        after, before = query.get("after_id"), query.get("before_id")
        if after and before:
            raise BadCall("after_id and before_id cannot be given at once")
        cursor = after or before
        if cursor and all(batch.id != cursor for batch in items):
            raise self.make_missing_error(place._replace(id=cursor))
        here, more = cut_page(items[::-1] if before else items, cursor, limit)
        here = here[::-1] if before else here
        data = [self.describe(batch, place) for batch in here]
        first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
        return {"data": data, "has_more": more, "first_id": first, "last_id": last}

    async def read_creation(self, place: Place) -> Creation:
        path = self.store.choose_place()
        try:
            await save(place.request.content.iter_chunked(1 << 18), path, MOST_BYTES, _TOO_LARGE)
            asked = decode(_CREATE, path.read_bytes()).requests
        finally:
            path.unlink(missing_ok=True)
        _check_ids([line.name for line in asked])
        lines = b"".join(encode(line) + b"\n" for line in asked)
        return Creation(lines, self.dialect, {"total": len(asked)}, asked[0].name)


def _render_result(name: str, kind: str, **more: Any) -> bytes:
    return encode({"custom_id": name, "result": {"type": kind, **more}}) + b"\n"


def _check_ids(names: list[str]) -> None:
    """Raise BadCall for invalid custom ids."""
    if not 1 <= len(names) <= MOST_REQUESTS:
        raise BadCall(f"requests: a batch takes 1 to {MOST_REQUESTS} requests, not {len(names)}")
    seen: set[str] = set()
    for number, name in enumerate(names):
        if not _NAME.fullmatch(name):
            raise BadCall(f"requests.{number}.custom_id: string should match pattern '^{_NAME.pattern}$'")
        if name in seen:
            raise BadCall(f"requests.{number}.custom_id: '{name}' is there twice")
        seen.add(name)


def _format_moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
