"""Check that an export format meets edgen's expectations."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgen.core.text import describe_type
from edgen.export.chat import build_chat
from edgen.export.format import Format
from edgen.export.row_check import find_row_flaw
from edgen.export.rows import LeftOut, Row
from edgen.export.write import export
from edgen.store.run_reader import RunReader
from edgen.testing.check import Check, begin_check, make_example_run, register_for_check


def check_format(
    format_: Format, run: str | Path | None = None, *, options: Mapping[str, Any] | None = None
) -> None:
    """Check an export format on the run in a folder; by default, on a small new run about Education Dialogue.
    `options`: the format's options by the names of their fields."""
    check = begin_check("format", format_)
    chosen = check.value("`read` refuses the options", format_.read, options or {})
    with (
        make_example_run(run) as folder,
        tempfile.TemporaryDirectory() as scratch,
        RunReader(folder) as reader,
    ):
        refusal = check.value("`refuse` raises", lambda: format_.refuse(reader))
        check.that(refusal is None, f"refuses the run: {refusal}")
        _check_rows(check, format_, reader, chosen)
        digests = []
        for name in ("one", "two"):
            target = Path(scratch, name)
            check.value("cannot be exported", export, reader, format_, target, chosen)
            digests.append(_digest_folder(target))
        check.that(
            digests[0] == digests[1], "two exports of one run differ; rows must not depend on time or chance"
        )
        given = (format_, folder.resolve(), options or {}, Path(scratch, "three"))
        check.require_same_elsewhere("its files", digests[0].encode(), _export_again, *given)


def _export_again(format_: Format, run: Path, options: Mapping[str, Any], target: Path) -> bytes:
    with register_for_check("format", format_), RunReader(run) as reader:
        export(reader, format_, target, format_.read(options))
    return _digest_folder(target).encode()


def _check_rows(check: Check, format_: Format, reader: RunReader, options: Any) -> None:
    chat = build_chat(reader, options)
    layers = () if format_.layout.layer_columns is None else reader.layers
    named = check.value("`tables` fails", format_.tables_of, reader.space, options, layers)
    tables = {table.name: table for table in named}
    items = check.value("`rows` raises", lambda: [*format_.rows(reader, chat)])
    check.that(items != [], "gives nothing, neither rows nor LeftOut, for a run with conversations")
    conversations = [*reader.conversations()]
    said = f"gives {len(items)} rows and LeftOut for {len(conversations)} conversations; each has one or more"
    check.that(len(items) >= len(conversations), said)
    splits = {one.split for one in conversations}
    types: dict[tuple[str, str], str] = {}
    for item in items:
        if isinstance(item, LeftOut):
            check.that(bool(format_.meaning(item.reason)), f"`reasons` does not explain {item.reason!r}")
            splits.clear()  # perhaps all of a split
            continue
        check.that(isinstance(item, Row), f"gives {describe_type(item)}, not a Row or LeftOut")
        flaw = find_row_flaw(format_, item, tables)
        check.that(flaw is None, str(flaw))
        splits.discard(item.split)
        _check_types(check, item, types)
    check.that(
        not splits,
        f"has no row of the split {min(splits, default='')!r}; give a Row its conversation's split",
    )


def _check_types(check: Check, row: Row, types: dict[tuple[str, str], str]) -> None:
    """Check that a column has values of one type, as a program that loads the files expects. `types`: those
    of earlier rows, by table and column."""
    for name, value in row.value.items() if isinstance(row.value, dict) else ():
        if value is None:
            continue
        kind = "float" if type(value) is int else "list" if type(value) is tuple else type(value).__name__
        before = types.setdefault((row.table, name), kind)
        said = (
            f"has values of the types {before} and {kind} in the column {name!r}; give it one type, or None"
        )
        check.that(before == kind, said)
        whole = not isinstance(value, int) or -(2**63) <= value < 2**63
        check.that(whole, f"gives {value} in the column {name!r}; whole numbers have 64 bits")


def _digest_folder(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
