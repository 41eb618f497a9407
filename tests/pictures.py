"""Pictures for tests: small files of each type that services take."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 8, height: int = 6, grey: int = 200) -> bytes:
    """Return a grey PNG of this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = (b"\0" + bytes([grey]) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


def gif(width: int = 8, height: int = 6) -> bytes:
    """Return the outline of a GIF."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00;"


def jpeg(width: int = 8, height: int = 6) -> bytes:
    """Return the outline of a JPEG, with a comment before its frame."""
    comment = b"\xff\xfe" + struct.pack(">H", 8) + b"hello!"
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + comment + frame + b"\xff\xd9"


def webp(width: int = 8, height: int = 6) -> bytes:
    """Return the outline of a lossless WebP."""
    bits = (width - 1) | (height - 1) << 14
    body = b"WEBPVP8L" + struct.pack("<I", 12) + b"\x2f" + struct.pack("<I", bits) + bytes(7)
    return b"RIFF" + struct.pack("<I", len(body)) + body
