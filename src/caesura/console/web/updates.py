"""The stream of one page: what has changed since its last message, at most four times a second.

A page that is not looked at closes its stream; then nothing is read and nothing is sent. A client that does
not take what it is sent is let go.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)
EVERY = 0.25
PATIENCE = 10.0
"""Seconds after which a client that takes nothing is let go."""
ALIVE = 15.0
"""Seconds after which something is sent though nothing has changed, to see whether anybody is there."""
LONGEST = 600.0
"""Seconds after which a stream ends; the page opens another."""
MAX_STREAMS = 16
Texts = dict[str, str]


class Updates:
    """The streams of all pages."""

    def __init__(self) -> None:
        self.open = 0
        self.closed = False
        """Whether the server listens no more, so that streams end."""

    def stream(self, read: Callable[[], Texts]) -> Response:
        """A stream of what ``read`` gives, as far as it has changed; refused where too many are open."""
        if self.open >= MAX_STREAMS:
            return Response("so many pages are open already\n", 503, headers={"Retry-After": "10"})
        return _Stream(self, read)


class _Stream(Response):
    """Server-sent events, until the client goes."""

    def __init__(self, updates: Updates, read: Callable[[], Texts]) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self._updates, self._read = updates, read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._updates.open += 1
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await _sent(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._send(send, gone)
            await _sent(send, {"type": "http.response.body", "body": b""})
        except TimeoutError:
            log.debug("a client of the console took nothing, and was let go")
        finally:
            gone.cancel()
            self._updates.open -= 1

    async def _send(self, send: Send, gone: asyncio.Future[None]) -> None:
        known: Texts = {}
        silent, until = 0.0, time.monotonic() + LONGEST
        while not gone.done() and not self._updates.closed and time.monotonic() < until:
            now = await run_in_threadpool(self._read)
            fresh = {key: text for key, text in now.items() if known.get(key) != text}
            silent = 0.0 if fresh else silent + EVERY
            if fresh or silent >= ALIVE:
                silent = 0.0
                body = f"data: {json.dumps(fresh)}\n\n" if fresh else ": still here\n\n"
                await _sent(send, {"type": "http.response.body", "body": body.encode(), "more_body": True})
            known = now
            await asyncio.wait([gone], timeout=EVERY)


async def _sent(send: Send, message: Message) -> None:
    async with asyncio.timeout(PATIENCE):
        await send(message)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
