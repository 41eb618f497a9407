"""Permissions that bind the superuser as well."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator

import pytest

_VERSION_3 = 0x20080522  # of the calls' structures, see capget(2)
_DAC_OVERRIDE = 1 << 1  # read and write against permissions; reading alone is another capability


@contextlib.contextmanager
def bound_by_permissions() -> Iterator[None]:
    """Allow this thread only the writes that permissions allow.

    It may read what it could read before, so that it works in a checkout that no other user can enter.
    """
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "capset"):
        pytest.skip("root can do without its privileges on Linux alone")
    before = _capabilities(libc)
    effective, *rest = struct.unpack("6I", before)
    _set(libc, struct.pack("6I", effective & ~_DAC_OVERRIDE, *rest))
    try:
        yield
    finally:
        _set(libc, before)


def _header() -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(struct.pack("Ii", _VERSION_3, 0))


def _capabilities(libc: ctypes.CDLL) -> bytes:
    data = ctypes.create_string_buffer(24)
    if libc.capget(_header(), data):
        raise OSError(ctypes.get_errno(), "capget")
    return data.raw


def _set(libc: ctypes.CDLL, data: bytes) -> None:
    if libc.capset(_header(), ctypes.create_string_buffer(data, 24)):
        raise OSError(ctypes.get_errno(), "capset")
