"""Stores of Google and Azure by their protocols: what is sent to a server that answers as theirs do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from caesura.errors import CaesuraError
from caesura.io.places import Place, objects

URIS = {"gs": "gs://b/x/7.json", "abfss": "abfss://b@acc.dfs.core.windows.net/x/7.json"}


class Store(ThreadingHTTPServer):
    """Objects with generations, which are their tags too; a put may ask for the one that it replaces."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.held: dict[str, tuple[int, bytes]] = {}
        self.between: list[bytes] = []
        """Puts of somebody else, each right before the next one that is asked for."""


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def log_message(self, *_: object) -> None:
        return

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        held, google = self.server.held, "x-ms-version" not in self.headers
        if self.server.between:
            held[self.path] = held.get(self.path, (0, b""))[0] + 1, self.server.between.pop()
        now = held.get(self.path, (0, b""))[0]
        match = "x-goog-if-generation-match" if google else "If-Match"
        wanted = self.headers[match] and int(self.headers[match].strip('"'))
        if self.headers["If-None-Match"] == "*":
            wanted = 0
        if wanted is not None and wanted != now:
            self._answer(412 if google or wanted else 409)
            return
        held[self.path] = now + 1, data
        self._answer(201, tag=now + 1)

    def do_GET(self) -> None:
        number, data = self.server.held.get(self.path, (0, b""))
        self._answer(200 if number else 404, data, number)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, code: int, data: bytes = b"", tag: int = 0) -> None:
        self.send_response(code)
        about = {"ETag": f'"{tag}"', "x-goog-generation": tag, "Content-Length": len(data)}
        about["Last-Modified"] = "Tue, 17 Nov 2026 02:00:00 GMT"
        for name, value in about.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else data)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Store]:
    with Store() as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        url, keys = f"http://127.0.0.1:{running.server_port}", tmp_path / "account.json"
        about = {"gcs_base_url": url, "disable_oauth": True, "client_email": "", "private_key": ""}
        keys.write_text(json.dumps({**about, "private_key_id": ""}))
        environment = {
            "GOOGLE_SERVICE_ACCOUNT": str(keys),
            "GOOGLE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": "acc",
            "AZURE_STORAGE_ACCOUNT_KEY": "a2V5",
            "AZURE_STORAGE_ENDPOINT": f"{url}/acc",
            "AZURE_ALLOW_HTTP": "true",
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        objects._opened.cache_clear()
        yield running
        running.shutdown()
    objects._opened.cache_clear()


@pytest.mark.parametrize("scheme", URIS)
def test_of_two_who_create_an_object_one_is_told_so(store: Store, scheme: str) -> None:
    place = Place.of(URIS[scheme])
    assert (place.create(b"mine"), place.create(b"yours")) == (True, False)
    assert (place.read_bytes(), place.size) == (b"mine", 4)
    place.put(b"later")
    assert place.read_bytes() == b"later"


@pytest.mark.parametrize("scheme", URIS)
@pytest.mark.parametrize("there", [False, True])
def test_an_update_begins_again_where_another_put_came_between(
    store: Store, scheme: str, there: bool
) -> None:
    place = Place.of(URIS[scheme])
    if there:
        place.put(b"a")
    store.between = [b"b"]
    assert place.update(lambda held: (held or b"") + b"c") == b"bc" == place.read_bytes()


def test_a_uri_is_the_bucket_or_the_container_of_an_account() -> None:
    stores = {
        uri: Place.of(uri) for uri in (*URIS.values(), "gcs://b/x", "abfs://c@acc.dfs.core.windows.net/x")
    }
    kinds = [type(place.storage._store).__name__ for place in stores.values()]
    assert kinds == ["GCSStore", "AzureStore", "GCSStore", "AzureStore"]
    settings = [place.storage._store.config for place in stores.values()]
    assert [s.get("bucket") or (s["container_name"], s["account_name"]) for s in settings] == [
        "b",
        ("b", "acc"),
        "b",
        ("c", "acc"),
    ]
    assert Place.of("gcs://b/x").hadoop == "gs://b/x"


@pytest.mark.parametrize(("scheme", "names"), [("gs", "GOOGLE_"), ("abfss", "AZURE_STORAGE_ACCOUNT_NAME")])
def test_a_store_that_cannot_be_reached_is_named_with_the_keys_that_it_takes(
    store: Store, monkeypatch: pytest.MonkeyPatch, scheme: str, names: str
) -> None:
    monkeypatch.setitem(objects.RETRIES, "max_retries", 0)
    with pytest.raises(CaesuraError, match=f"cannot be read.*\n.*{names}"):
        Place.of(URIS[scheme]).reach()
