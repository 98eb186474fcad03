"""Who may see the pages: this machine alone by default, with the token of the link; other sites never.

A request comes under one of this machine's own names (a site that points its name here is refused), with the
cookie that the link has set, or, where other machines may ask, with the password; one that changes something
comes from a page of ours.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caesura.console.web.pages import told
from caesura.runtime.metrics.endpoint import own_name

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without one, browsers do not say where a form comes from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LOOKS = ("/sql",)
"""Forms that only look, taken by a console that only shows too: they run in a process of their own."""
SAFE = ("GET", "HEAD")
WRONG_PASSWORDS, WITHIN = 10, 60.0
"""So many wrong passwords in so many seconds, and nobody is asked for one any more until they are over."""


@dataclass
class Access:
    """What a visitor has to bring."""

    host: str
    """The address that is listened at."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    password: str | None = field(default=None, repr=False)
    """Asked for where other machines may look; the link's token is of no use then."""
    proxy: tuple[str, str] | None = None
    """A header that a proxy sets for those whom it knows, and the address that it asks from."""
    read_only: bool = False
    port: int = 0
    first: str = "/"
    """The page that the link leads to."""
    _wrong: list[float] = field(default_factory=list, repr=False)

    @property
    def cookie(self) -> str:
        """Cookies do not know ports: each console of a machine has one of its own name."""
        return f"caesura-console-{self.port}"

    def refusal(self, request: Request) -> Response | None:
        """Why a request is not answered; None where it is."""
        headers = request.headers
        if not own_name(self.host, headers.get("host", "")):
            return _told(403, "Not by this name", "Open the link that the console has printed.")
        if request.method not in (*SAFE, "POST"):
            return _told(405, "Not allowed", "Pages are read, and forms of theirs are posted.")
        if request.method == "POST" and not self._from_here(headers):
            return _told(403, "From another site", "A form is taken from a page of this console only.")
        if (
            headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
            and headers.get("sec-fetch-mode") != "navigate"
        ):
            return _told(403, "From another site", "Pages of other sites may link here, and no more.")
        if not self._knows(request):
            return self._ask(request)
        if request.method == "POST" and self.read_only and request.url.path not in LOOKS:
            return _told(403, "Read only", "This console only shows; start one without --read-only to speak.")
        return None

    def _knows(self, request: Request) -> bool:
        if self.proxy is not None:
            name, address = self.proxy
            asks = "" if request.client is None else request.client.host
            return asks == address and bool(request.headers.get(name, "").strip())
        if self.password is not None:
            return self._knows_password(request.headers)
        return self._has_cookie(request)

    def _from_here(self, headers: Headers) -> bool:
        """Whether a browser says that a page of ours sends this."""
        origin = headers.get("origin", "")
        return (
            bool(origin)
            and urlsplit(origin).netloc == headers.get("host")
            and headers.get("sec-fetch-site", "same-origin") == "same-origin"
        )

    def _has_cookie(self, request: Request) -> bool:
        try:
            found = SimpleCookie(request.headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and _same(found.value, self.token)

    def _knows_password(self, headers: Headers) -> bool:
        assert self.password is not None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic" or self._too_many_wrong():
            return False
        try:
            password = b64decode(given, validate=True).decode().partition(":")[2]
        except (NotBase64, UnicodeDecodeError):
            return False
        if _same(password, self.password):
            return True
        self._wrong.append(time.monotonic())
        return False

    def _too_many_wrong(self) -> bool:
        since = time.monotonic() - WITHIN
        self._wrong = [at for at in self._wrong if at > since]
        return len(self._wrong) >= WRONG_PASSWORDS

    def _ask(self, request: Request) -> Response:
        if self.proxy is not None:
            return _told(403, "Not through the proxy", "Ask through the proxy, which knows you.")
        if self.password is not None:
            if self._too_many_wrong():
                return _told(429, "Too many wrong passwords", "Wait a minute.")
            answer = _told(401, "Password", "The console asks for its password; any user name will do.")
            answer.headers["WWW-Authenticate"] = 'Basic realm="Caesura console", charset="UTF-8"'
            return answer
        if (
            request.method == "GET"
            and request.url.path == "/"
            and _same(request.query_params.get("token", ""), self.token)
        ):
            answer = RedirectResponse(self.first, 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="lax", path="/")
            return answer
        return _told(
            403, "The link is not whole", "Open the link that the console has printed, with its token."
        )


def _same(given: str, wanted: str) -> bool:
    """Whether two texts are equal; how long that takes tells nothing of either."""
    return hmac.compare_digest(
        *(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in (given, wanted))
    )


def _told(code: int, title: str, words: str) -> Response:
    return Response(told(title, words), code, media_type="text/html")


class GuardedPages:
    """An application behind its access; every answer has the headers that keep a page to itself."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # a websocket is none of ours; the server closes it
        answer: ASGIApp | None = self._access.refusal(Request(scope))
        await (answer or self._app)(scope, receive, _headed(send))


def _headed(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return headed
