"""The candidates that each example of a set offers, looked up in its file as they are needed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgen.core.errors import DataError
from edgen.retrieval.findings import Finding, finding, listed
from edgen.retrieval.submission import Ranking, as_id, plain
from edgen.retrieval.truth import NONE
from edgen.validation.reading import read_records


class Pools:
    """A file of examples in DSTC7's layout (`example-id`, `options-for-next`). In memory is the file as it is."""

    def __init__(self, path: Path) -> None:
        """Raises DataError where the file holds no example."""
        self._entries: dict[str, msgspec.Raw] = {}
        for raw in read_records(path):
            entry = plain(raw)
            example = as_id(entry.get("example-id")) if isinstance(entry, dict) else None
            if example is not None:
                self._entries[example] = raw
        if not self._entries:
            raise DataError(str(path), "it holds no examples: objects with an 'example-id'.")

    def check(self, ranking: Ranking) -> Finding | None:
        """What the ranking holds that its example does not offer. `NONE` may always stand there."""
        raw = self._entries.get(ranking.example)
        if raw is None:
            return finding("other_candidate", ranking.example, "the file of examples does not have this one")
        offered = self._offered(raw)
        others = [one for one in ranking.candidates if one is not None and one not in offered]
        return finding("other_candidate", ranking.example, listed(others)) if others else None

    def _offered(self, raw: msgspec.Raw) -> set[str]:
        options = plain(raw).get("options-for-next")
        those = options if isinstance(options, list) else []
        ids = (as_id(one.get("candidate-id")) for one in those if isinstance(one, dict))
        return {NONE, *(one.upper() for one in ids if one is not None)}
