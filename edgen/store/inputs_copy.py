"""The ledger's copy of a run's inputs, and its restoration.

Each ledger of a run's conversations holds the texts of its folder's job.yaml and inputs as the fact `inputs`.
An arm's ledger also holds those of the whole run. The copy has its own digest, so a damaged copy is never
restored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgen.config import is_input
from edgen.core.digest import compute_fingerprint, compute_sha256
from edgen.core.errors import DamagedError, EdgenError, SpaceError
from edgen.core.files import read_regular
from edgen.core.kept_files import DIGESTS, find_damage, read_digests, write_kept_texts
from edgen.store.ledger import Ledger, LedgerReader
from edgen.store.run_folder import RunFolder

INPUTS = "inputs"  # the fact's name
_UP = "../../"  # from an arm to its run
_LARGEST = 1 << 26  # bytes of one input


class _Copy(msgspec.Struct, frozen=True):
    """Texts by path, relative to the ledger's folder."""

    digest: str
    files: dict[str, str]


def keep_copy(ledger: Ledger, run: RunFolder) -> None:
    """Queue a copy of the newly written inputs of the ledger's run, unless the ledger already has it."""
    files = _read_texts(run.path)
    if (whole := run.whole) is not None:
        files |= {f"{_UP}{name}": text for name, text in _read_texts(whole.path).items()}
    copy = msgspec.json.encode(_Copy(_digest_files(files), files)).decode()
    if ledger.read_fact(INPUTS) != copy:
        ledger.set_fact(INPUTS, copy)


def restore_inputs(run: RunFolder) -> list[Path]:
    """Restore every changed input of a run and its arms. Return their paths.

    A damaged or missing digests.json is rewritten for the inputs, and is among the paths. The caller holds
    the run's lock. Raises DamagedError if no ledger has a copy.
    """
    arms = [RunFolder(path) for path in sorted(run.arms_folder.glob("*")) if path.is_dir()]
    ledgers = [(run.path, run.ledger), *((arm.path, arm.ledger) for arm in arms)]
    copies = {folder: _read_copy(path) for folder, path in ledgers}
    restored = _restore(run.path, [copies[run.path], *(_of_the_whole(copies[arm.path]) for arm in arms)])
    for arm in arms:
        restored += _restore(arm.path, [copies[arm.path]])
    return restored


def _restore(folder: Path, copies: list[dict[str, str]]) -> list[Path]:
    copied = sorted({name for copy in copies for name in copy if is_input(name)})
    try:
        damaged = [damage.name for damage in find_damage(folder, is_input)]
        entries = read_digests(folder)
        if not (folder / DIGESTS).exists():
            damaged = copied
    except DamagedError:  # of digests.json: the copies define the inputs
        damaged, entries = copied, {}
        if not damaged:
            raise
    texts = dict[Path, str]()
    restored = [folder / DIGESTS] if copied and not entries else []
    for name in damaged:
        held = {digest.sha256 for digest in entries[name].digests if digest} if name in entries else None
        found = {copy[name] for copy in copies if name in copy}
        good = {text for text in found if held is None or compute_sha256(text) in held}
        if len(good) != 1:
            raise DamagedError(
                f"{folder / name}: it has changed since the run was made, and the ledger has no copy of the "
                "original. Restore it from a copy of the run, or `edgen generate` the job from its project "
                "again: it writes the run's inputs again, and pays only for calls that they change."
            )
        text = good.pop()
        texts[folder / name] = text
        if not _is(folder / name, text):
            restored.append(folder / name)
    for path in texts:
        path.parent.mkdir(exist_ok=True)
    if texts:
        write_kept_texts(folder, texts)
    return restored


def _is(path: Path, text: str) -> bool:
    """Return whether the file has this content."""
    return path.is_file() and read_regular(path, _LARGEST) == text.encode()


def _read_texts(folder: Path) -> dict[str, str]:
    """Return the inputs with a digest in a run's folder."""
    names = (name for name in read_digests(folder) if is_input(name))
    return {name: read_regular(folder / name, _LARGEST).decode() for name in names}


def _of_the_whole(copy: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix(_UP): text for name, text in copy.items() if name.startswith(_UP)}


def _read_copy(ledger: Path) -> dict[str, str]:
    """Return the copy in a ledger; empty if it is missing or damaged."""
    with contextlib.suppress(EdgenError, ValueError, RecursionError):
        if ledger.exists():
            with LedgerReader(ledger) as view:
                if (noted := view.read_fact(INPUTS)) is not None:
                    copy = msgspec.json.decode(noted, type=_Copy)
                    return copy.files if copy.digest == _digest_files(copy.files) else {}
    return {}


def _digest_files(files: dict[str, str]) -> str:
    return compute_fingerprint(files, 64)


def find_named_inputs(job: Mapping[str, Any]) -> set[str]:
    """Return the templates, spaces and files of backends that the jobs of a run and its arms name. For files
    next to them, see `find_accompanying_files`."""
    found: set[Any] = set()
    for values in (job, *(job.get("arms") or {}).values()):
        found |= {values.get("space"), values.get("prompt"), *(values.get("prompts") or {}).values()}
        backends = [one for one in (values.get("backends") or {}).values() if isinstance(one, dict)]
        found |= {name for one in backends for name in one.values() if str(name).startswith("inputs/")}
    return {name for name in found if isinstance(name, str)}


def find_accompanying_files(run: RunFolder, inputs: Iterable[str]) -> set[str]:
    """Return the files next to a run's inputs: schemas of templates, knowledge files and pictures of
    spaces."""
    from edgen.prompting.prompt import find_schema_file
    from edgen.space import load_space
    from edgen.space.pictures import name_kept_file

    found = {str(find_schema_file(Path(name))) for name in inputs if name.endswith(".j2")}
    for space in (Path(name) for name in inputs if name.endswith(".yaml")):
        with contextlib.suppress(SpaceError):  # users of the space report it
            knowledge = load_space(run.path / space).knowledge
            found |= {str(space.parent / knowledge.file)} if knowledge else set()
            found.add(str(space.parent / name_kept_file(space.name)))
    return {name for name in found if (run.path / name).is_file()}
