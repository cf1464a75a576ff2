"""Tests the publication on Maven Central with a fake publisher API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import central


class Central(ThreadingHTTPServer):
    """A publisher API whose deployments pass through the states, one in each query."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.states: list[str] = []
        self.uploads: list[bytes] = []
        self.requests: list[tuple[str, str | None]] = []

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/publisher"


class Handler(BaseHTTPRequestHandler):
    server: Central

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.path, self.headers["Authorization"]))
        if self.path.startswith("/publisher/upload?"):
            self.server.uploads.append(body)
            self.answer(201, f"id-{len(self.server.uploads)}")
            return
        states = self.server.states
        state = states.pop(0) if len(states) > 1 else states[0]
        if state == "404":
            self.answer(404, "")
        else:
            status = {"deploymentState": state, "errors": {"pkg": ["no signature"]}}
            self.answer(200, json.dumps(status))

    def answer(self, code: int, text: str) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Central]:
    with Central() as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("CENTRAL_API", server.api)
        monkeypatch.setenv("CENTRAL_TOKEN", "secret")
        monkeypatch.setattr("time.sleep", lambda _: None)
        Path("bundle.zip").write_bytes(b"the bundle")
        yield server
        server.shutdown()


def publish(server: Central, states: Sequence[str]) -> int:
    server.states = list(states)
    return central.main(["bundle.zip", "fletching-2.3.4", "deployment.txt"])


def test_publish_waits_until_published(server: Central) -> None:
    assert publish(server, ["PENDING", "VALIDATING", "VALIDATED", "PUBLISHING", "PUBLISHED"]) == 0
    assert len(server.requests) == 6
    (body,) = server.uploads
    assert b'name="bundle"; filename="bundle.zip"\r\n' in body and b"\r\nthe bundle\r\n" in body
    path = "/publisher/upload?name=fletching-2.3.4&publishingType=AUTOMATIC"
    assert server.requests[0] == (path, "Bearer secret")
    assert server.requests[1] == ("/publisher/status?id=id-1", "Bearer secret")
    assert Path("deployment.txt").read_text(encoding="utf-8") == "id-1\n"


def test_publish_of_refused_bundle_fails(
    server: Central, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(server, ["VALIDATING", "FAILED"]) == 1
    said = capsys.readouterr().out
    assert "id-1: expected PUBLISHED, got FAILED: " in said and "no signature" in said


def test_publish_that_takes_too_long_fails(
    server: Central, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(central, "QUERIES", 3)
    assert publish(server, ["PUBLISHING"]) == 1
    assert "got PUBLISHING; hint: run this job again" in capsys.readouterr().out
    assert len(server.requests) == 1 + 3


@pytest.mark.parametrize("state", ["PENDING", "VALIDATED", "PUBLISHING", "PUBLISHED"])
def test_publish_again_uploads_nothing(server: Central, state: str) -> None:
    Path("deployment.txt").write_text("id-0\n", encoding="utf-8")
    assert publish(server, [state, "PUBLISHED"]) == 0
    assert server.uploads == []
    assert {path for path, _ in server.requests} == {"/publisher/status?id=id-0"}


@pytest.mark.parametrize("state", ["FAILED", "404"])
def test_publish_after_failed_deployment_uploads_again(server: Central, state: str) -> None:
    Path("deployment.txt").write_text("id-0\n", encoding="utf-8")
    assert publish(server, [state, "PUBLISHED"]) == 0
    assert len(server.uploads) == 1
    assert Path("deployment.txt").read_text(encoding="utf-8") == "id-1\n"


def test_publish_without_server_could_not_run(
    server: Central, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CENTRAL_API", "http://127.0.0.1:1/")
    assert publish(server, []) == 2
    assert capsys.readouterr().err.startswith("central: ")
