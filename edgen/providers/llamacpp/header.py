"""The header of a GGUF file: the metadata of a model, and the positions of its tensors.

The reader skips arrays, which hold the vocabulary, so a header takes 10 ms (the package gguf: 4 s). It never
reads beyond the file. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import functools
import mmap
import struct
from pathlib import Path
from typing import Any, NamedTuple

from edgen.plugin.errors import InputError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_ENTRIES = 1 << 20  # metadata entries, or tensors; a large model has some thousands
_DEEPEST = 4  # nested lists
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Header(NamedTuple):
    """Facts of a model."""

    architecture: str  # the network's architecture
    name: str  # the name in the file
    chat_template: str | None  # None without one
    trained_context: int  # tokens; 0 if not stated
    cache_bytes: int  # bytes of memory for each token of the context; 0 if unknown
    size: int  # bytes of the file


def read_header(path: Path) -> Header:
    """Return the header of a GGUF file. Raises InputError for a file that is missing, cut off or not a
    model."""
    try:
        found = path.stat()
        return _read(path, found.st_size, found.st_mtime_ns)
    except OSError as problem:
        raise InputError(f"the model {path} cannot be read: {problem.strerror or problem}.") from None


@functools.lru_cache(maxsize=32)
def _read(path: Path, size: int, _modified: int) -> Header:
    with path.open("rb") as file:
        if (magic := file.read(4)) != _MAGIC:
            begins = f"begins with {magic!r}" if magic else "is empty"
            raise InputError(f"{path} is not a GGUF file: it {begins}. Name the model's .gguf file.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            reader = _Reader(data)
            try:
                return _read_header(reader, path, size)
            except (struct.error, IndexError):
                raise InputError(
                    f"{path} is cut off: it ends within its header, after {_format_megabytes(size)}. Copy or "
                    "download it again."
                ) from None
            except (ValueError, OverflowError) as problem:
                raise InputError(
                    f"{path} has a damaged header ({problem}). Copy or download it again."
                ) from None


def _read_header(reader: _Reader, path: Path, size: int) -> Header:
    version, tensors, entries = reader.unpack("<IQQ", at=4)
    if version not in _VERSIONS:
        raise InputError(
            f"{path} has version {version} of the format GGUF; edgen reads versions 2 and 3. Convert the "
            "model again."
        )
    if max(tensors, entries) > _MOST_ENTRIES:
        raise ValueError(f"{max(tensors, entries):,} entries")
    facts = {}
    for _ in range(entries):
        name = reader.read_text()
        facts[name] = reader.read_value()
    _require_data(reader, tensors, facts, path, size)
    if (parts := _read_positive_int(facts.get("split.count"))) > 1:
        raise InputError(
            f"{path} is one of {parts} parts of a model. Join them (`llama-gguf-split --merge`), and name "
            "the whole."
        )
    architecture = str(facts.get("general.architecture", ""))
    return Header(
        architecture=architecture,
        name=str(facts.get("general.name", "")),
        chat_template=facts.get("tokenizer.chat_template") or None,
        trained_context=_read_positive_int(facts.get(f"{architecture}.context_length")),
        cache_bytes=_count_cache_bytes(facts, architecture),
        size=size,
    )


def _require_data(reader: _Reader, tensors: int, facts: dict[str, Any], path: Path, size: int) -> None:
    """Raise InputError unless the file reaches to the beginning of its last tensor. llama.cpp checks the
    end."""
    last = 0
    for _ in range(tensors):
        reader.read_text()
        (dimensions,) = reader.unpack("<I")
        *_, offset = reader.unpack(f"<{dimensions}QIQ")
        last = max(last, offset)
    alignment = _read_positive_int(facts.get("general.alignment")) or 32
    begins = -(-reader.place // alignment) * alignment + last
    if tensors and begins >= size:
        raise InputError(
            f"{path} is cut off: it has {_format_megabytes(size)}, and its last tensor begins after "
            f"{_format_megabytes(begins)}. Copy or download it again."
        )


def _count_cache_bytes(facts: dict[str, Any], architecture: str) -> int:
    """Return the bytes of a token in the context: its keys and values in every layer, at 16 bits."""

    def read_fact(name: str) -> int:
        return _read_positive_int(facts.get(f"{architecture}.{name}"))

    heads = read_fact("attention.head_count")
    width = read_fact("embedding_length") // heads if heads else 0
    key, value = read_fact("attention.key_length") or width, read_fact("attention.value_length") or width
    return 2 * read_fact("block_count") * (read_fact("attention.head_count_kv") or heads) * (key + value)


def _read_positive_int(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _format_megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


class _Reader:
    """A position in a file's bytes. Raises struct.error beyond their end."""

    def __init__(self, data: mmap.mmap) -> None:
        self.place = 0
        self._data = data

    def unpack(self, form: str, *, at: int | None = None) -> tuple[Any, ...]:
        start = self.place if at is None else at
        values = struct.unpack_from(form, self._data, start)
        self.place = start + struct.calcsize(form)
        return values

    def read_text(self) -> str:
        start = self.place + 8
        self._skip_text()
        return self._data[start : self.place].decode("utf-8", "replace")

    def read_value(self) -> Any:
        """Read a typed value; None for an array."""
        (kind,) = self.unpack("<I")
        if kind == _STRING:
            return self.read_text()
        if kind == _ARRAY:
            return self._skip_array(0)
        return self.unpack(f"<{_name_form(kind)}")[0]

    def _skip_array(self, depth: int) -> None:
        kind, count = self.unpack("<IQ")
        if kind == _STRING:
            for _ in range(count):
                self._skip_text()
        elif kind == _ARRAY and depth < _DEEPEST:
            for _ in range(count):
                self._skip_array(depth + 1)
        else:
            self._skip(count * struct.calcsize(f"<{_name_form(kind)}"))

    def _skip_text(self) -> None:
        (length,) = self.unpack("<Q")
        self._skip(length)

    def _skip(self, length: int) -> None:
        self.place += length
        if self.place > len(self._data):
            raise IndexError


def _name_form(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"a value of type {kind}")
    return _SCALARS[kind]
