"""A schema registry: schemas by their numbers and subjects, by the REST protocol of Confluent's clients.

A record that was written with one begins with a zero byte and the number of its schema. What a number stands
for never changes, so a process asks once. Who may ask is said by an environment variable, wherever the
registry is asked: a password is in no plan, log or message.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from caesura.errors import DataError, PlanError, StreamError
from caesura.io.codecs.protocol import reason
from caesura.misuse import strict
from caesura.plan import Duration, here, seconds

MAGIC = b"\0"
HEADER = 5
"""The bytes in front of a record: a zero, and the number of its schema."""
CONTENT = "application/vnd.schemaregistry.v1+json"
PAUSE_SECONDS = 0.1
NOT_FOUND, CONFLICT = 404, 409
BUSY = (429, 502, 503, 504)
"""Answers after which it is asked again."""


class RegisteredSchema(NamedTuple):
    """A schema as a registry has it."""

    number: int
    kind: str
    """AVRO, PROTOBUF or JSON."""
    text: str


@dataclass(frozen=True)
class SchemaRegistry:
    """Where a registry is, and how long one waits for it; it travels to workers."""

    url: str
    auth_env: str | None = None
    """The environment variable with "user:password", or with "Bearer" and a token."""
    seconds: float = 30.0

    def by_number(self, number: int, *, serialized: bool = False) -> RegisteredSchema | None:
        """The schema of a number; None where the registry has none."""
        return _by_number(self, number, serialized)

    def latest(self, subject: str, *, serialized: bool = False) -> RegisteredSchema:
        """The last schema of a subject."""
        tail = "?format=serialized" if serialized else ""
        found = self.asked(f"/subjects/{quote(subject, safe='')}/versions/latest{tail}")
        if found is None:
            raise DataError(
                f"the registry at '{self.url}' has no subject '{subject}'.",
                remedy="Name one that it has, often the topic's name with '-value'; or write to it first.",
            )
        return RegisteredSchema(int(found["id"]), _kind(found), str(found["schema"]))

    def register(self, subject: str, kind: str, text: str) -> int:
        """The number of a schema, which the subject has from then on; one that does not fit is refused."""
        body = {"schema": text, **({} if kind == "AVRO" else {"schemaType": kind})}
        found = self.asked(f"/subjects/{quote(subject, safe='')}/versions", body)
        return int((found or {})["id"])

    def asked(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """What the registry answers; None where there is nothing of that name. It is waited for."""
        until = time.monotonic() + self.seconds
        while True:
            try:
                return self._answer(path, body)
            except HTTPError as error:
                if error.code == NOT_FOUND:
                    return None
                if error.code not in BUSY:
                    raise self.refusal(error.code, _message(error)) from None
                why = f"it answers {error.code}"
            except (URLError, OSError, ValueError) as error:
                why = reason(getattr(error, "reason", None) or error)
            if time.monotonic() >= until:
                raise StreamError(
                    f"no schema registry answers at '{self.url}' within {self.seconds:g} s: {why}.",
                    remedy="Start it, or give its address: cz.registry(url, timeout=...).",
                )
            time.sleep(PAUSE_SECONDS)

    def _answer(self, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        headers = {"Accept": CONTENT, "Content-Type": CONTENT}
        if self.auth_env is not None:
            headers["Authorization"] = self._authorization()
        data = None if body is None else json.dumps(body).encode()
        asking = Request(self.url + path, data, headers, method="GET" if data is None else "POST")
        with urlopen(asking, timeout=max(1.0, self.seconds)) as answer:
            return dict(json.loads(answer.read()))

    def _authorization(self) -> str:
        given = os.environ.get(self.auth_env or "", "")
        if not given:
            raise StreamError(
                f"the environment variable '{self.auth_env}' has no credentials for the registry at "
                f"'{self.url}'.",
                remedy="Set it to user:password, or to Bearer and a token, here and in Spark's executors.",
            )
        if given.startswith("Bearer "):
            return given
        return "Basic " + base64.b64encode(given.encode()).decode()

    def refusal(self, code: int, why: str) -> StreamError:
        """What it means that the registry does not do what it was asked."""
        if code in (401, 403):
            given = "no credentials" if self.auth_env is None else f"what '{self.auth_env}' holds"
            return StreamError(
                f"the registry at '{self.url}' does not accept {given}.",
                remedy="Give cz.registry(url, auth_env=...) the name of an environment variable with "
                "user:password, or with Bearer and a token.",
            )
        if code == CONFLICT:
            return StreamError(
                f"the registry at '{self.url}' does not take the schema, which does not fit earlier ones: "
                f"{why}.",
                remedy="Change the columns so that they fit, write to another subject, or set another "
                "compatibility for it.",
            )
        return StreamError(
            f"the registry at '{self.url}' answers {code}: {why}.",
            remedy="See its log; schemas and subjects must be such as it takes.",
        )


def _message(error: HTTPError) -> str:
    """What the body of a refusal says."""
    try:
        return reason(ValueError(str(json.loads(error.read())["message"])))
    except (ValueError, KeyError, TypeError, OSError):
        return reason(error)


def _kind(found: Mapping[str, Any]) -> str:
    return str(found.get("schemaType") or "AVRO")


@lru_cache(maxsize=4096)
def _known(registry: SchemaRegistry, number: int, serialized: bool) -> RegisteredSchema:
    tail = "?format=serialized" if serialized else ""
    found = registry.asked(f"/schemas/ids/{number}{tail}")
    if found is None:
        raise LookupError(number)
    return RegisteredSchema(number, _kind(found), str(found["schema"]))


def _by_number(registry: SchemaRegistry, number: int, serialized: bool) -> RegisteredSchema | None:
    """What is not there now may be there later: only what was found is remembered."""
    try:
        return _known(registry, number, serialized)
    except LookupError:
        return None


def check_kind(found: RegisteredSchema, subject: str | None, wanted: str) -> None:
    """Refuses a subject whose schemas are of another kind."""
    if found.kind != wanted:
        raise DataError(
            f"the subject '{subject}' has schemas of the kind {found.kind}, not {wanted}.",
            remedy=f"Name a subject of {wanted}, or read the records as what they are.",
        )


def no_subject() -> PlanError:
    """That there is no schema, old or new, without a subject."""
    return PlanError(
        "schemas of a registry go by their subject, and none is named.",
        remedy="Give subject=, often the topic's name with '-value'.",
    )


def split_header(record: bytes) -> tuple[int, bytes]:
    """The number of a record's schema, and the rest of it."""
    if len(record) < HEADER or record[:1] != MAGIC:
        raise ValueError("names no schema of a registry")
    return int.from_bytes(record[1:HEADER], "big"), record[HEADER:]


def header(number: int) -> bytes:
    """What a record begins with that was written with the schema of a number."""
    return MAGIC + number.to_bytes(4, "big")


@strict
def registry(url: str, *, auth_env: str | None = None, timeout: Duration = "30s") -> SchemaRegistry:
    """A schema registry, for `cz.avro` and `cz.protobuf`.

    Parameters
    ----------
    url
        Its address, without a password: ``"https://registry:8081"``.
    auth_env
        The environment variable that holds ``user:password``, or ``Bearer`` and a token; it is read where
        the registry is asked, also in Spark's executors.
    timeout
        For how long an answer may take.

    Returns
    -------
    SchemaRegistry
        For ``registry=``.

    See Also
    --------
    avro : records that hold Avro.
    protobuf : records that hold messages.

    Examples
    --------
    >>> import caesura as cz
    >>> cz.registry("https://registry:8081", auth_env="REGISTRY_LOGIN").url
    'https://registry:8081'
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc:
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        raise PlanError(
            f"'{shown}' is no address of a registry"
            + (", for it has a password in it." if "@" in parts.netloc else "."),
            remedy="Write cz.registry('https://registry:8081'); a password goes into an environment variable "
            "that auth_env= names.",
        ).at("registry", here())
    try:
        return SchemaRegistry(url.rstrip("/"), auth_env, seconds(timeout, "timeout"))
    except PlanError as error:
        raise error.at("registry", here()) from None
