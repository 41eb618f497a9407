"""Pictures in prompts.

In the text of a message, a picture is its **mark**, which has the picture's digest, type and size. So a
request is identified by the digests of its pictures, and prompts can be shown, compared and stored as texts.
Adapters send an image part in place of each mark (`lower_pictures`).

A mark has an effect only if this process has read the picture of that digest. Pictures come from files whose
type and size are found in their content.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from edgen.core.digest import compute_sha256
from edgen.core.errors import InputError
from edgen.core.values import Message

MOST_BYTES = 3_500_000  # of one picture: services take 5 MB in base64
MOST_SIDE = 8_000  # pixels
_MARK = re.compile(r"⟦picture ([0-9a-f]{64}) image/[a-z]{3,4} [0-9]{1,4}x[0-9]{1,4}⟧")
BEGIN = "⟦picture "
WORDS = "[a picture]"  # for a model that sees no pictures


class PromptPicture(msgspec.Struct, frozen=True):
    """A picture with the bytes of its file. `width` and `height` are in pixels."""

    digest: str
    media_type: str
    width: int
    height: int
    data: bytes

    @property
    def mark(self) -> str:
        """The text that stands for it in a prompt."""
        return f"{BEGIN}{self.digest} {self.media_type} {self.width}x{self.height}⟧"

    @property
    def base64(self) -> str:
        """Its bytes in base64."""
        return base64.b64encode(self.data).decode()


class PictureTokens(NamedTuple):
    """The tokens that a model counts for a picture: as expected, and at most."""

    expected: int
    most: int


Counted = Callable[[PromptPicture], PictureTokens]
_KNOWN: dict[str, PromptPicture] = {}  # pictures that this process has read, by digest


def read_picture(data: bytes) -> PromptPicture:
    """Return the picture in the bytes of a file, and remember it. Raises ValueError as `parse_picture`
    does."""
    made = parse_picture(data)
    return _KNOWN.setdefault(made.digest, made)


def parse_picture(data: bytes) -> PromptPicture:
    """Return the picture in the bytes of a file. Raises ValueError, with a clause, for anything but a picture
    that services take."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES:,} bytes, the most that is sent; make it smaller")
    media_type, (width, height) = _look_into(data)
    if not 1 <= min(width, height) <= max(width, height) <= MOST_SIDE:
        raise ValueError(f"it has {width} × {height} pixels; each side has 1 to {MOST_SIDE:,}")
    return PromptPicture(compute_sha256(data), media_type, width, height, data)


def pictures_in(text: str) -> list[PromptPicture]:
    """Return the pictures whose marks are in a text."""
    if BEGIN not in text:
        return []
    return [_KNOWN[digest] for digest in _MARK.findall(text) if digest in _KNOWN]


def refuse_pictures(messages: Sequence[Message], reason: str | None) -> None:
    """Raise InputError for a picture in the messages, if there is a reason why it cannot be sent."""
    if reason is not None and any(pictures_in(message.content) for message in messages):
        raise InputError(f"a prompt shows a picture, and {reason}.")


def without_pictures(text: str) -> str:
    """Return a text without the marks of pictures, with the words of a prompt for a model that sees none."""
    return text if BEGIN not in text else "".join(_replace_picture(part) for part in _split(text))


def _replace_picture(part: str | PromptPicture) -> str:
    return part if isinstance(part, str) else WORDS


def count_picture_tokens(text: str, counted: Counted) -> PictureTokens:
    """Return the tokens of the pictures in a text."""
    found = [counted(one) for one in pictures_in(text)]
    return PictureTokens(sum(one.expected for one in found), sum(one.most for one in found))


def lower_pictures(
    messages: Sequence[Message], text: Callable[[str], Any], picture: Callable[[PromptPicture], Any]
) -> Sequence[Message | dict[str, Any]]:
    """Return the messages of a request as a service takes them: one with pictures has a list of parts as its
    content, which `text` and `picture` make.

    Services take pictures from users only. So one in a system message is moved to the first message of the
    user, and numbered in both. Assistants' messages are sent as they are.
    """
    if not any(pictures_in(message.content) for message in messages):
        return messages
    moved: list[PromptPicture] = []
    system: dict[int, str] = {}
    for place, message in enumerate(messages):
        if message.role == "system":
            system[place] = "".join(_number_picture(part, moved) for part in _split(message.content))
    found: list[Message | dict[str, Any]] = []
    for place, message in enumerate(messages):
        if place in system:
            found.append(Message("system", system[place]))
            continue
        parts = _split(message.content) if message.role == "user" else [message.content]
        if message.role == "user" and moved:
            parts, moved = [*_label_pictures(moved), *parts], []
        if all(isinstance(part, str) for part in parts):
            found.append(message)
        else:
            content = [text(part) if isinstance(part, str) else picture(part) for part in parts]
            found.append({"role": message.role, "content": content})
    if moved:
        content = [text(part) if isinstance(part, str) else picture(part) for part in _label_pictures(moved)]
        found.append({"role": "user", "content": content})
    return found


def _number_picture(part: str | PromptPicture, moved: list[PromptPicture]) -> str:
    """Return a part of a system message as text; a picture is noted, and named by its number."""
    if isinstance(part, str):
        return part
    if part not in moved:
        moved.append(part)
    return f"[picture {moved.index(part) + 1}]"


def _label_pictures(pictures: Sequence[PromptPicture]) -> list[str | PromptPicture]:
    return [part for number, one in enumerate(pictures, 1) for part in (f"[picture {number}]", one)]


def _split(text: str) -> list[str | PromptPicture]:
    """Split a text at the marks of pictures; blank texts next to a picture are left out."""
    found: list[str | PromptPicture] = []
    end = 0
    for mark in _MARK.finditer(text):
        if (one := _KNOWN.get(mark[1])) is not None:
            found += [text[end : mark.start()], one]
            end = mark.end()
    found.append(text[end:])
    return [part for part in found if not isinstance(part, str) or part.strip()] if len(found) > 1 else found


# ---- types and sizes of files


def _look_into(data: bytes) -> tuple[str, tuple[int, int]]:
    """Return the type of a file and the picture's size, by its content."""
    kinds = {
        b"\x89PNG\r\n\x1a\n": ("image/png", _read_png_size),
        b"\xff\xd8\xff": ("image/jpeg", _read_jpeg_size),
        b"GIF87a": ("image/gif", _read_gif_size),
        b"GIF89a": ("image/gif", _read_gif_size),
        b"RIFF": ("image/webp", _read_webp_size),
    }
    for begin, (media_type, measured) in kinds.items():
        if data.startswith(begin):
            if (size := measured(data)) is None:
                raise ValueError(f"it begins as {media_type}, and is cut off or damaged")
            return media_type, size
    raise ValueError("it is not a PNG, JPEG, GIF or WebP picture")


def _read_png_size(data: bytes) -> tuple[int, int] | None:
    end = data.rfind(b"IEND")
    if data[12:16] != b"IHDR" or not 0 < end <= len(data) - 8:  # a checksum follows
        return None
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def _read_gif_size(data: bytes) -> tuple[int, int] | None:
    if len(data) < 14 or data[-1:] != b";":
        return None
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _read_jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Find the frame header among the segments."""
    if b"\xff\xd9" not in data[-64:]:
        return None
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        kind, length = data[place + 1], int.from_bytes(data[place + 2 : place + 4])
        if kind == 0xFF:  # filling
            place += 1
            continue
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = data[place + 5 : place + 7], data[place + 7 : place + 9]
            return int.from_bytes(width), int.from_bytes(height)
        if length < 2:
            return None
        place += 2 + length
    return None


def _read_webp_size(data: bytes) -> tuple[int, int] | None:
    kind = data[8:16]
    if len(data) < 30 or len(data) < int.from_bytes(data[4:8], "little") + 8:
        return None
    if kind == b"WEBPVP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"WEBPVP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"WEBPVP8 " and data[23:26] == b"\x9d\x01\x2a":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None
