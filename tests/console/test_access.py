"""Who may see the console's pages, and what others get."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_console import Client, served, small_query

from caesura.console.web import access, server, speaking
from caesura.errors import PlanError


@pytest.fixture(scope="module")
def stranger() -> Iterator[Client]:
    with served() as client:
        yield client


@pytest.fixture(scope="module")
def visitor(stranger: Client) -> Client:
    return stranger.follow_link()


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/stream", "/static/console.js", "/?token=%ff"])
def test_without_the_link_nothing_is_shown(stranger: Client, path: str) -> None:
    assert stranger.ask(path).code == 403


def test_the_link_gives_a_cookie_that_scripts_and_other_sites_do_not_get(stranger: Client) -> None:
    link = stranger.server.url.partition(str(stranger.server.port))[2]
    cookie = stranger.ask(link).headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie
    assert f"caesura-console-{stranger.server.port}=" in cookie


def test_the_cookie_opens_the_pages(visitor: Client) -> None:
    assert visitor.ask("/").code == visitor.ask("/static/console.css").code == 200


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80"])
def test_another_name_of_this_machine_is_refused(visitor: Client, name: str) -> None:
    assert visitor.ask("/", Host=name).code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_a_form_of_another_site_is_refused(visitor: Client, origin: str) -> None:
    assert visitor.post("/", Origin=origin).code == 403


def test_a_browser_that_names_another_site_is_believed(visitor: Client) -> None:
    assert visitor.post("/", Sec_Fetch_Site="cross-site").code == 403
    assert visitor.ask("/stream", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").code == 403
    assert visitor.ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(visitor: Client, method: str) -> None:
    assert visitor.ask("/", method).code == 405


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/static/x"],
)
def test_a_path_leads_nowhere_else(visitor: Client, path: str) -> None:
    answer = visitor.ask(path)
    assert answer.code == 404 and "import" not in answer.body


@pytest.mark.parametrize("path", ["/", "/nowhere", "/static/console.js"])
def test_every_answer_keeps_to_itself(visitor: Client, path: str) -> None:
    headers = visitor.ask(path).headers
    assert {name.lower(): value for name, value in access.HEADERS.items()}.items() <= headers.items()
    assert "unsafe" not in headers["content-security-policy"]


def test_pages_have_no_scripts_or_styles_of_their_own(visitor: Client) -> None:
    page = visitor.ask("/").body
    assert "style=" not in page and "onclick" not in page and page.count("<script") == 1


def test_a_console_that_only_shows_takes_no_form() -> None:
    with served(read_only=True) as stranger:
        answer = stranger.follow_link().post("/")
    assert answer.code == 403 and "Read only" in answer.body


def test_other_machines_need_a_password() -> None:
    with pytest.raises(PlanError, match="asks for no password"):
        small_query().console(host="0.0.0.0", open_page=False)


def test_a_password_is_asked_for_and_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "WRONG_PASSWORDS", 2)
    secret = tmp_path / "password"
    secret.write_text("correct horse\n")
    secret.chmod(0o600)
    with served(host="0.0.0.0", password_file=secret) as client:
        assert "token" not in client.server.url
        asked = client.ask("/")
        assert asked.code == 401 and asked.headers["www-authenticate"].startswith("Basic")
        assert client.ask("/", Authorization=_basic("correct horse")).code == 200
        assert client.ask("/", Authorization="Basic ???").code == 401
        assert [client.ask("/", Authorization=_basic("wrong")).code for _ in range(2)] == [401, 429]
        assert client.ask("/", Authorization=_basic("correct horse")).code == 429


def test_behind_a_proxy_its_header_counts_and_from_its_address_alone() -> None:
    with served(host="0.0.0.0", proxy="X-Forwarded-User@127.0.0.1") as client:
        assert "token" not in client.server.url
        assert client.ask("/").code == 403 and client.ask("/", X_Forwarded_User=" ").code == 403
        assert client.ask("/", X_Forwarded_User="ann").code == 200
        assert client.ask("/stream", Cookie="caesura-console-1=x").code == 403
        assert client.post("/feedback", "x=1", X_Forwarded_User="ann", Origin="http://evil").code == 403
    with served(host="0.0.0.0", proxy="X-Forwarded-User@10.9.8.7") as client:
        assert client.ask("/", X_Forwarded_User="ann").code == 403
        assert client.ask("/", X_Forwarded_User="ann", X_Forwarded_For="10.9.8.7").code == 403


@pytest.mark.parametrize("proxy", ["X-User", "@10.0.0.1", "X User@10.0.0.1", "X-User@proxy.example", ""])
def test_a_proxy_is_named_by_a_header_and_an_address(proxy: str) -> None:
    with pytest.raises(PlanError, match="HEADER@ADDRESS"):
        small_query().console(proxy=proxy, open_page=False)


def _basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"me:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("text", "mode", "wrong"), [("correct horse", 0o644, "others can read"), ("short", 0o600, "5 characters")]
)
def test_a_password_file_is_private_and_long_enough(tmp_path: Path, text: str, mode: int, wrong: str) -> None:
    secret = tmp_path / "password"
    secret.write_text(text)
    secret.chmod(mode)
    with pytest.raises(PlanError, match=wrong):
        small_query().console(password_file=secret, open_page=False)


def test_a_client_that_does_not_finish_its_request_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.2)
    with served() as client, socket.create_connection(("127.0.0.1", client.server.port), timeout=10) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert _ended(slow)


@pytest.mark.parametrize("path", ["/feedback", "/trace", "/debug", "/debug/test"])
def test_a_form_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(speaking, "PATIENCE", 0.2)
    with served() as client:
        visitor, port = client.follow_link(), client.server.port
        own = f"Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nCookie: {visitor.cookie}\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
            slow.sendall(f"POST {path} HTTP/1.1\r\n{own}Content-Length: 9000\r\n\r\nrows=".encode())
            assert slow.recv(1000).startswith(b"HTTP/1.1 408")
        assert visitor.ask(path.removesuffix("/test")).code == 200


@pytest.mark.parametrize("path", ["/trace", "/debug", "/debug/test"])
def test_without_the_link_no_form_is_taken(stranger: Client, path: str) -> None:
    assert stranger.post(path, "rows=a").code == 403


def _ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_of_many_connections_only_some_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CLIENTS", 4)
    with served() as client:
        visitor = client.follow_link()
        many = [socket.create_connection(("127.0.0.1", client.server.port), timeout=10) for _ in range(6)]
        assert visitor.ask("/").code == 503
        for one in many:
            one.close()
