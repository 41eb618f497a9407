"""A file on its way to a client: at once, or with a pause in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiohttp import web

from edgen.simulator.batches import File


async def send_file(
    request: web.BaseRequest, file: File, pause: float, headers: Mapping[str, str]
) -> web.StreamResponse:
    """The answer that holds a file; `pause`: seconds between its two halves."""
    if not pause:
        return web.FileResponse(file.path, headers=headers)
    content = file.path.read_bytes()
    response = web.StreamResponse(headers={**headers, "Content-Length": str(len(content))})
    await response.prepare(request)
    await response.write(content[: len(content) // 2])
    await asyncio.sleep(pause)
    await response.write(content[len(content) // 2 :])
    await response.write_eof()
    return response
