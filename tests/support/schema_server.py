"""A small schema registry over HTTP: subjects, numbers, versions, backward compatibility of Avro records."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class SchemaServer:
    """What a registry holds, and what it was asked."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self.wanted = ""
        """The authorization that it lets in; empty for all."""
        self.broken = 0
        """So many answers are errors of the server, before it works."""
        self.url = ""

    def add(self, subject: str, schema: Any, kind: str = "AVRO") -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        known = [n for n, s in self.schemas.items() if s == {"schema": text, "schemaType": kind}]
        number = known[0] if known else 100 + len(self.schemas)
        self.schemas[number] = {"schema": text, "schemaType": kind}
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    @contextmanager
    def served(self) -> Iterator[SchemaServer]:
        handler = type("Handler", (SchemaHandler,), {"registry": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        match method, [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]:
            case "GET", ["schemas", "ids", number] if int(number) in self.schemas:
                return 200, self._shown(int(number))
            case "GET", ["subjects", subject, "versions", "latest"] if subject in self.subjects:
                number = self.subjects[subject][-1]
                return 200, {"subject": subject, "id": number, **self._shown(number)}
            case "POST", ["subjects", subject, "versions"]:
                kind = body.get("schemaType", "AVRO")
                if not self._fits(subject, kind, body["schema"]):
                    return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
                return 200, {"id": self.add(subject, body["schema"], kind)}
        return 404, {"error_code": 40401, "message": "not found"}

    def _shown(self, number: int) -> dict[str, Any]:
        """Avro is the kind that needs no name."""
        return {k: v for k, v in self.schemas[number].items() if (k, v) != ("schemaType", "AVRO")}

    def _fits(self, subject: str, kind: str, text: str) -> bool:
        """Whether what was written before can be read: fields that are new have defaults."""
        if kind != "AVRO" or subject not in self.subjects:
            return True
        before = json.loads(self.schemas[self.subjects[subject][-1]]["schema"])
        names = {field["name"]: field["type"] for field in before["fields"]}
        fields = json.loads(text)["fields"]
        return all(f["type"] == names[f["name"]] if f["name"] in names else "default" in f for f in fields)


class SchemaHandler(BaseHTTPRequestHandler):
    """Speaks HTTP for a registry."""

    registry: SchemaServer

    def do_GET(self) -> None:
        registry = self.registry
        registry.asked.append(f"{self.command} {self.path}")
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        if registry.broken:
            registry.broken -= 1
            code, found = 503, {"message": "busy"}
        elif registry.wanted and self.headers.get("Authorization") != registry.wanted:
            code, found = 401, {"error_code": 401, "message": "Unauthorized"}
        else:
            code, found = registry.answer(self.command, self.path, body)
        data = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        return
