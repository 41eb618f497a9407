"""Files of a folder with digests in `digests.json` at the folder's top.

A file is written in three steps: its new digest is added to the valid ones; the file is renamed into place;
the earlier digest is dropped. After a kill at any moment the file still has a valid digest, and the next
holder of the folder's lock drops the other one (`settle_digests`). A file with another digest was changed
from outside: a flipped bit, a cut, an editor. Such a file is refused before it is used.

A file without an entry was written by an older edgen, or by hand, and is accepted. `digests.json` contains
its own digest. Writers hold the folder's lock; readers need none. The folder holds no links (`refuse_links`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path

import msgspec

from edgen.core.digest import compute_fingerprint, compute_sha256
from edgen.core.errors import DamagedError, RunError
from edgen.core.files import (
    Part,
    explain_write_errors,
    find_target,
    open_regular,
    read_regular,
    sync_folder,
    write_whole,
)

DIGESTS = "digests.json"
_LAYOUT = 1
_LARGEST = 1 << 26  # bytes of a digests.json
_DEPTH = 4  # folders between a file and the digests.json above it
_CHUNK = 1 << 20  # bytes
_LINK = ("a link, which could lead anywhere", "Put what it leads to in its place, or remove it.")
_DEVICE = ("a pipe, a device or a socket, not a file", "Remove it.")


class Digest(msgspec.Struct, frozen=True):
    """The content of a file: its sha256 in hex, its size in bytes, and its number of line feeds."""

    sha256: str
    size: int
    lines: int

    @classmethod
    def of(cls, data: bytes) -> Digest:
        """Return the digest of a file with this content."""
        return cls(compute_sha256(data), len(data), data.count(b"\n"))


class KeptDigests(msgspec.Struct, frozen=True, omit_defaults=True):
    """The valid digests of a file: one, or two while it is being replaced; None means no file. `grows`:
    others may append lines, so the digest covers the beginning."""

    digests: tuple[Digest | None, ...]
    grows: bool = False


class Damage(msgspec.Struct, frozen=True):
    """A changed file, and a clause on the difference. `name` is its path in the folder."""

    name: str
    what: str
    missing: bool = False


class _Noted(msgspec.Struct, frozen=True):
    layout: int
    sha256: str
    files: dict[str, KeptDigests]


def read_digests(folder: Path) -> dict[str, KeptDigests]:
    """Return the entries of a folder's digests.json by their files' paths in the folder, empty if there is no
    such file. Raises DamagedError."""
    path = folder / DIGESTS
    try:
        noted = msgspec.json.decode(read_regular(path, _LARGEST), type=_Noted)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as problem:
        raise _make_digests_error(folder, str(problem)) from None
    if not all(map(_list_digests, noted.files.values())):
        raise _make_digests_error(folder, "one of its entries has no digest")
    if not all(map(_is_inside, noted.files)):
        raise _make_digests_error(folder, "it names files outside of its folder")
    if noted.layout != _LAYOUT or noted.sha256 != compute_fingerprint(noted.files, 64):
        raise _make_digests_error(folder, "its content does not match its own digest")
    return noted.files


def require_kept(path: Path, remedy: str) -> None:
    """Raise DamagedError unless the file is unchanged, or has no digest. `remedy`: a sentence on how to
    restore it. A missing file raises only if it grows, since nothing can write it again; the reader reports
    others."""
    folder, entry = _find_entry(path)
    if entry is None:
        return
    damage = _compare(folder, path.relative_to(folder).as_posix(), entry)
    if damage is not None and (entry.grows or not damage.missing):
        raise DamagedError(f"{path}: {damage.what}. {remedy}")


def is_kept(path: Path) -> bool:
    """Return whether the file exists and is unchanged, or has no digest."""
    try:
        require_kept(path, "")
    except DamagedError:
        return False
    return path.is_file()


def has_digest(path: Path) -> bool:
    """Return whether a digest of the file is noted."""
    return _find_entry(path)[1] is not None


def find_damage(folder: Path, wanted: Callable[[str], bool] = lambda _name: True) -> Iterator[Damage]:
    """Yield every changed or missing file of a folder. `wanted` selects by path. Raises DamagedError for a
    damaged digests.json."""
    for name, entry in sorted(read_digests(folder).items()):
        if wanted(name) and (damage := _compare(folder, name, entry)) is not None:
            yield damage


class KeptWriter:
    """A file being written, with its growing digest. It is published when the context ends."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._hash = hashlib.sha256()
        self._bytes = self.lines = 0

    def write_line(self, line: bytes) -> None:
        """Write a line with its line feed."""
        self._part.write(line)
        self._part.write(b"\n")
        self._hash.update(line)
        self._hash.update(b"\n")
        self._bytes += len(line) + 1
        self.lines += 1 + line.count(b"\n")

    @property
    def digest(self) -> Digest:
        """The digest of what is written so far."""
        return Digest(self._hash.hexdigest(), self._bytes, self.lines)


@contextlib.contextmanager
def replace_kept(folder: Path, path: Path, *, grows: bool = False) -> Iterator[KeptWriter]:
    """Publish what the body writes at `path`, in `folder`, with its digest in the folder's digests.json; if
    the body raises, nothing is changed. Raises StoppedError and RunError as `explain_write_errors`."""
    with explain_write_errors(path):
        part = Part(path)
        try:
            writer = KeptWriter(part)
            yield writer
            part.close()
            with _note_digests(folder, {path: writer.digest}, grows=grows):
                part.publish()
                sync_folder(path.parent)
        finally:
            part.discard()


def write_kept_lines(folder: Path, path: Path, lines: Iterable[bytes], *, grows: bool = False) -> int:
    """Write a file of lines with a digest in `folder`; return their number."""
    count = 0
    with replace_kept(folder, path, grows=grows) as file:
        for line in lines:
            file.write_line(line)
            count += 1
    return count


def write_kept_texts(folder: Path, texts: Mapping[Path, str]) -> None:
    """Write these files with digests in `folder` if they differ; all digests are noted at once. Raises
    OSError."""
    data = {path: text.encode() for path, text in texts.items()}
    digests = {path: Digest.of(content) for path, content in data.items()}
    changed = [path for path, content in data.items() if _read_content(path) != content]
    if not changed and _hold(folder, digests):
        return
    with _note_digests(folder, digests):
        for path in changed:
            write_whole(path, data[path])


def forget_digests(folder: Path, names: Iterable[str]) -> None:
    """Remove the entries of these files, and of everything in the folders of these names."""
    dropped = [*names]
    try:
        entries = read_digests(folder)
    except DamagedError:
        entries = {}  # the entries of other files are lost
    left = {
        name: entry
        for name, entry in entries.items()
        if not any(name == one or name.startswith(f"{one}/") for one in dropped)
    }
    if left != entries or (not left and (folder / DIGESTS).exists()):
        _write_entries(folder, left)


def settle_digests(folder: Path) -> None:
    """Keep the matching one of each file's digests if a kill left several; a damaged file keeps all. Raises
    StoppedError and RunError as `explain_write_errors`."""
    try:
        entries = read_digests(folder)
    except DamagedError:
        return  # its readers report it
    settled = {name: _settle(folder, name, entry) for name, entry in entries.items()}
    if settled != entries:
        with explain_write_errors(folder / DIGESTS):
            _write_entries(
                folder, {name: entry for name, entry in settled.items() if entry.digests != (None,)}
            )


def _settle(folder: Path, name: str, entry: KeptDigests) -> KeptDigests:
    """Return the entry with only the newest matching digest; with only None if the file may be missing and
    is."""
    if len(entry.digests) == 1:
        return entry
    try:
        with open_regular(folder / name) as file:
            holds = _find_held(file, entry)
    except FileNotFoundError:
        return KeptDigests((None,)) if None in entry.digests else entry
    except OSError:
        return entry
    return entry if holds is None else KeptDigests((holds,), entry.grows)


@contextlib.contextmanager
def _note_digests(folder: Path, digests: Mapping[Path, Digest], *, grows: bool = False) -> Iterator[None]:
    """Add these digests to the earlier ones while the body renames the files; afterwards drop the earlier
    ones."""
    names = {path.relative_to(folder).as_posix(): digest for path, digest in digests.items()}
    try:
        entries = read_digests(folder)
    except DamagedError:
        entries = {}  # the entries of the other files are lost
    both = dict(entries)
    for name, digest in names.items():
        before = entries[name].digests if name in entries else () if (folder / name).exists() else (None,)
        if before or not (folder / name).exists():
            both[name] = KeptDigests((*dict.fromkeys((*before, digest)),), grows)
        else:  # an older edgen wrote the present file: until it is replaced, it has no digest
            both.pop(name, None)
    if both != entries:
        _write_entries(folder, both)
    yield
    _write_entries(folder, entries | {name: KeptDigests((digest,), grows) for name, digest in names.items()})


def _write_entries(folder: Path, entries: Mapping[str, KeptDigests]) -> None:
    files = dict(sorted(entries.items()))
    noted = _Noted(_LAYOUT, compute_fingerprint(files, 64), files)
    write_whole(folder / DIGESTS, msgspec.json.format(msgspec.json.encode(noted), indent=1) + b"\n")


def _is_inside(name: str) -> bool:
    """Return whether a path leads to a file in the folder, which may be foreign."""
    return not {"", ".", ".."} & {*name.split("/")} and "\0" not in name


def _make_digests_error(folder: Path, what: str) -> DamagedError:
    return DamagedError(
        f"{folder / DIGESTS}: this list of digests is damaged ({what}), so nothing says whether the run's "
        "files are whole. "
        f"`edgen validate {folder} --restore` writes it again for the run's inputs, which the ledger has; "
        "other files have no digest until the command that makes them is run again."
    )


def _find_entry(path: Path) -> tuple[Path, KeptDigests | None]:
    """Return the folder above a file that has a digests.json, and its entry for the file."""
    for folder in path.parents[:_DEPTH]:
        if (folder / DIGESTS).exists():
            return folder, read_digests(folder).get(path.relative_to(folder).as_posix())
    return path.parent, None


def _compare(folder: Path, name: str, entry: KeptDigests) -> Damage | None:
    """Return the difference between a file and its entry; None if there is none."""
    try:
        with open_regular(folder / name) as file:
            if _find_held(file, entry) is not None:
                return None
            wanted = _list_digests(entry)[0]
            found = _digest_file(file, wanted.size if entry.grows else None)
    except FileNotFoundError:
        return None if None in entry.digests else Damage(name, "it is missing", missing=True)
    except OSError as problem:
        return Damage(name, f"it cannot be read ({problem.strerror})")
    return Damage(name, _describe(found, wanted, grows=entry.grows))


def _find_held(file: BufferedReader, entry: KeptDigests) -> Digest | None:
    """Return an entry's newest digest that matches an open file; None if none matches."""
    held = _list_digests(entry)
    if not entry.grows:
        found = _digest_file(file, None)
        return found if found in held else None
    return next((digest for digest in held if _digest_file(file, digest.size) == digest), None)


def _list_digests(entry: KeptDigests) -> list[Digest]:
    """Return the digests of an entry, newest first."""
    return [digest for digest in reversed(entry.digests) if digest is not None]


def _describe(found: Digest, wanted: Digest, *, grows: bool) -> str:
    if found.lines != wanted.lines:
        size = f"it has {found.lines:,} lines instead of {wanted.lines:,}"
    elif found.size != wanted.size:
        size = f"it has {found.size:,} bytes instead of {wanted.size:,}"
    else:
        size = "its sha256 differs"
    part = "its beginning was" if grows and found.size == wanted.size else "it was"
    return f"{part} changed after edgen wrote it: {size}"


def _digest_file(file: BufferedReader, limit: int | None) -> Digest:
    """Return the digest of an open file, or of its first `limit` bytes."""
    file.seek(0)
    hashed, size, lines = hashlib.sha256(), 0, 0
    while chunk := file.read(_CHUNK if limit is None else min(_CHUNK, limit - size)):
        hashed.update(chunk)
        size += len(chunk)
        lines += chunk.count(b"\n")
    return Digest(hashed.hexdigest(), size, lines)


def _read_content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _hold(folder: Path, digests: Mapping[Path, Digest]) -> bool:
    """Return whether exactly these digests are noted for these files."""
    try:
        entries = read_digests(folder)
    except DamagedError:
        return False
    return all(
        entries.get(path.relative_to(folder).as_posix()) == KeptDigests((digest,))
        for path, digest in digests.items()
    )


def refuse_links(folder: Path, names: Collection[str] | None = None) -> None:
    """Raise RunError if `folder` contains, at any depth, anything but regular files and folders; `names`:
    check only these names in it. The folder's own path, which the user gave, may be a link."""
    for entry in _walk(folder, names):
        if not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
            what, hint = _LINK if entry.is_symlink() else _DEVICE
            raise RunError(f"{entry.path}: this is {what}. Nothing was read or changed. {hint}")


def remove_temporary_files(folder: Path, names: Collection[str]) -> None:
    """Remove the temporary files of killed processes for these names in a folder, and in the folders of these
    names. The caller holds a lock that keeps others from writing there."""
    for entry in _walk(folder, names):
        if find_target(entry.name) is not None and not entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                Path(entry.path).unlink()


def _walk(folder: Path, names: Collection[str] | None) -> Iterator[os.DirEntry[str]]:
    """Yield everything in a folder, at any depth, without following links. `names`: only below these names in
    it, and temporary names for them."""
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                found = list(entries)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            raise RunError(f"{place}: it cannot be read ({problem.strerror}).") from None
        for entry in found:
            if place is folder and names is not None and (find_target(entry.name) or entry.name) not in names:
                continue
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
