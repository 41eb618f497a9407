"""The files of a set: a JSON list for each side, one example per line, and a table of the test side's right
answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, Any

import msgspec

from edgen.domains.retrieval.export.dstc7.options import Dstc7Options
from edgen.domains.retrieval.export.dstc7.pool import SOURCES
from edgen.domains.retrieval.export.dstc7.reworded import DIALOGS, list_writers
from edgen.plugin import Row
from edgen.plugin.formats import Patterns, RowFiles, Staging


class ExampleFiles(RowFiles):
    """A writer of the files `<prefix>_train_subtask_<n>.json`, `_dev_` and `_test_`. The test file has no
    right answers; they are in `<prefix>_responses_subtask_<n>.tsv`. `<prefix>_candidate_pool_subtask_2.tsv`
    is shared by all examples of sub-task 2. `<prefix>_dialogs_subtask_3.json` has the conversations of
    sub-task 3's examples, with all paraphrases."""

    def __init__(self, staging: Staging) -> None:
        super().__init__(staging)
        self.options = staging.options.of(Dstc7Options)
        self.prefix = self.options.prefix or re.sub(r"[^\w.-]", "-", staging.run.name)
        self.counts: Counter[str] = Counter()
        self._encode = msgspec.json.Encoder().encode
        self._lists: dict[str, Callable[[bytes], object]] = {}
        self._truth: IO[bytes] | None = None
        self._pool: IO[bytes] | None = None

    def add(self, row: Row) -> None:
        """Write an example, a conversation, or a text of the pool."""
        if row.table == "pool":
            self._add_to_pool(row.value["candidate"], row.value["source"])
            return
        if row.table == DIALOGS:
            self._append(DIALOGS, row.value["dialog"])
            return
        self.write_row_files(row)
        side, example = row.value["side"], row.value["example"]
        self.counts[side] += 1
        for what in ("topped_up", "borrowed", "reworded"):
            self.counts[what] += row.value.get(what, 0) > 0
        if "profile" in example:
            self.counts["profiles"] += 1
            self.counts["preferences"] += side != "test" and bool(example["profile"]["Aggregated"])
        if side == "test":
            self._hide(example)
        self._append(side, example)

    def _append(self, which: str, value: dict[str, Any]) -> None:
        """Write a member of one of the lists."""
        if which not in self._lists:
            path = self.folder / self.name(which, "json")
            self._lists[which] = self.open_items(path, b"[\n", b"\n]\n")
        self._lists[which](self._encode(value))

    def name(self, what: str, suffix: str) -> str:
        """Return the name of a file."""
        return f"{self.prefix}_{what}_subtask_{self.options.subtask}.{suffix}"

    def _hide(self, example: dict[str, Any]) -> None:
        """Move the right answers of an example to their table."""
        right = example.pop("options-for-correct-answers")
        if self._truth is None:
            self._truth = self.open(self.folder / self.name("responses", "tsv"))
        ids = ",".join(one["candidate-id"] for one in right)
        self._truth.write(f"{example['example-id']}\t{ids}\t{right[0]['utterance']}\n".encode())

    def _add_to_pool(self, candidate: dict[str, str], source: str) -> None:
        if self._pool is None:
            self._pool = self.open(self.folder / self.name("candidate_pool", "tsv"))
        self.counts[source] += 1
        self._pool.write(f"{candidate['candidate-id']}\t{candidate['utterance']}\n".encode())

    def finish(self) -> Patterns:
        """Finish the files."""
        self._open.close()
        self.remarks = tuple(self._list_notes())
        return {}

    def notes(self) -> Iterator[str]:
        """Yield sentences with the number of examples of each side, and of those topped up."""
        sides = ", ".join(f"{self.counts[side]:,} {side}" for side in ("train", "dev", "test"))
        yield (
            f"Examples: {sides}; those for validation (dev) are a part of the run's train side and counted "
            "there."
        )
        if self.options.tests == 1:
            writers = ", ".join(list_writers(self.staging.run.rundir))
            yield (
                "Test examples are conversations of the train side in other words (tests of the first "
                f"kind). {writers} wrote the "
                "paraphrases; turns without any stay as they are. Conversations of the run's test side are "
                "not in this set."
            )
        yield from self._list_notes()

    def _list_notes(self) -> Iterator[str]:
        total = sum(self.counts[side] for side in ("train", "dev", "test"))
        if topped := self.counts["topped_up"]:
            yield (
                f"{topped:,} of {total:,} examples have fewer candidates by --negatives "
                f"{self.options.negatives} than they "
                "need; the others were drawn from any agent's turns on the same side."
            )
        if borrowed := self.counts["borrowed"]:
            yield (
                f"{borrowed:,} of {total:,} examples are on a side that is too small for their candidates; "
                "the others were drawn from the train side. In these examples, a text that training "
                "contains is mostly wrong."
            )
        if self._pool is not None:
            yield from self._list_pool_notes()
        if self.options.subtask == 3:
            yield from self._list_paraphrase_notes(total)
        if self.options.subtask == 5 and not self.counts["profiles"]:
            yield "The run's space has no courses, so examples have no profile."
        if self.counts["profiles"] and not self.counts["preferences"]:
            yield (
                "`Aggregated` is empty in every profile: no dimension of the space, and no field of its "
                "entries, is named like a field of its knowledge file."
            )

    def _list_paraphrase_notes(self, total: int) -> Iterator[str]:
        run = self.staging.run
        yield (
            f"A model wrote the paraphrases ({', '.join(list_writers(run.rundir))}); nobody checked that "
            "they mean the same."
        )
        if alone := total - self.counts["reworded"]:
            tests = " or the only one is for tests," if self.options.tests == 1 else ""
            yield (
                f"{alone:,} of {total:,} examples have one right answer: there are no paraphrases of "
                f"it,{tests} or its text has changed since. `edgen annotate {run.rundir.path} --write "
                "paraphrases` writes the missing ones."
            )

    def _list_pool_notes(self) -> Iterator[str]:
        parts = [f"{self.counts[source]:,} {what}" for source, what in SOURCES.items() if self.counts[source]]
        size = sum(self.counts[source] for source in SOURCES)
        yield f"The pool has {size:,} texts: {', '.join(parts)}."
        if size < self.options.pool:
            yield (
                f"The pool is smaller than the {self.options.pool:,} of --pool. To fill it, name other "
                "runs with --pool-from, or write more paraphrases with `edgen annotate RUN --write "
                "paraphrases`."
            )
