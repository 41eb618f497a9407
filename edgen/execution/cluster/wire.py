"""A connection between head and worker: frames of messages, with a minimum time between two frames.

A message after a pause is sent at once, so a few slow calls never wait. Messages of many calls share frames,
since a frame costs each side as much as several messages. With more workers, each has fewer calls, so frames
are further apart (`compute_frame_interval`).

Ray starts workers and ends them; messages do not pass through it, since a call of an actor costs the caller
0.5 to 0.9 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from edgen.execution.cluster.messages import BEAT, Heartbeat, ToHead, ToWorker

_APART = (0.02, 0.1)  # seconds between two frames: per worker, and at most
_HEAD = 4  # bytes of a frame's length
_MOST = 2**31  # maximum bytes of a frame
_FIRST = 1024  # maximum bytes of the first frame, whose sender is unknown


def compute_frame_interval(workers: int) -> float:
    """Return the minimum seconds between two frames of a connection, for a number of workers."""
    each, most = _APART
    return min(most, each * workers)


_encode = msgspec.msgpack.Encoder().encode
decode_to_head: Callable[[bytes | memoryview], list[Any]] = msgspec.msgpack.Decoder(list[ToHead]).decode
decode_to_worker: Callable[[bytes | memoryview], list[Any]] = msgspec.msgpack.Decoder(list[ToWorker]).decode


class Wire(asyncio.Protocol):
    """One end of a connection. `hear` gets the messages of each frame; `lose` is called at the end of the
    connection. `trusted`: long frames are allowed. `apart`: minimum seconds between two frames. `heard`:
    loop's time of the last bytes from the other end."""

    def __init__(
        self,
        decode: Callable[[memoryview], list[Any]],
        hear: Callable[[Wire, list[Any]], None],
        lose: Callable[[Wire], None],
        *,
        trusted: bool,
        apart: float,
    ) -> None:
        self._decode, self._hear, self._lose, self._apart = decode, hear, lose, apart
        self._most = _MOST if trusted else _FIRST
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: list[Any] = []
        self._gathering: asyncio.TimerHandle | None = None
        self._sent = 0.0  # loop's time of the last frame
        self._beating: asyncio.TimerHandle | None = None
        self.heard = self._loop.time()

    def trust(self) -> None:
        """Allow long frames."""
        self._most = _MOST

    def follow(self, hear: Callable[[Wire, list[Any]], None], lose: Callable[[Wire], None]) -> None:
        """Replace the functions that get messages and the end."""
        self._hear, self._lose = hear, lose

    def send(self, message: Any) -> None:
        """Queue a message."""
        self._waiting.append(message)
        if self._gathering is None:
            self._gathering = self._loop.call_at(self._sent + self._apart, self.flush)

    def flush(self) -> None:
        """Send all queued messages now."""
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if self._waiting and self._transport is not None and not self._transport.is_closing():
            frame = _encode(self._waiting)
            self._transport.write(len(frame).to_bytes(_HEAD, "big") + frame)
            self._sent = self._loop.time()
        self._waiting = []

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to send signs of life."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._beating = self._loop.call_later(BEAT, self._beat)

    def _beat(self) -> None:
        self.send(Heartbeat(self._loop.time()))
        self._beating = self._loop.call_later(BEAT, self._beat)

    def data_received(self, data: bytes) -> None:
        """Decode whole frames."""
        self.heard = self._loop.time()
        received, start = self._received, 0
        received += data
        while len(received) - start >= _HEAD:
            size = int.from_bytes(received[start : start + _HEAD], "big")
            if size > self._most:
                self.close()
                return
            if len(received) - start - _HEAD < size:
                break
            start += _HEAD
            try:
                with memoryview(received) as whole, whole[start : start + size] as frame:
                    messages = self._decode(frame)
            except msgspec.MsgspecError:
                self.close()
                return
            start += size
            self._hear(self, messages)
        del received[:start]

    def connection_lost(self, _error: Exception | None) -> None:
        """Call `lose`."""
        for timer in (self._beating, self._gathering):
            if timer is not None:
                timer.cancel()
        self._lose(self)
