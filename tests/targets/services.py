"""A server for tests: it reads requests, keeps them, and does whatever a test wants with the connection."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

#: What a service does with a connection after it has read a request.
Behaviour = Callable[[socket.socket, dict[str, Any]], None]


@dataclass
class Service:
    """A server of one behaviour, and what it was sent."""

    behaviour: Behaviour
    context: ssl.SSLContext | None = None
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    connections: int = 0
    heads: list[str] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    open: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.listener.getsockname()[1]}/count"

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                self.open.append(connection)
                self.threads.append(threading.Thread(target=self.serve, args=(connection,)))
                self.threads[-1].start()

    def serve(self, connection: socket.socket) -> None:
        with suppress(OSError), closing(connection):
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
                self.open.append(connection)
            with closing(connection), connection.makefile("rb") as stream:
                while head := read_head(stream):
                    length = int(re.findall(r"(?i)content-length: (\d+)", head)[0])
                    request = json.loads(stream.read(length))
                    self.heads.append(head)
                    self.requests.append(request)
                    self.behaviour(connection, request)


def read_head(stream: Any) -> str:
    lines: list[bytes] = []
    while (line := stream.readline()).strip():
        lines.append(line)
    return b"".join(lines).decode()


@contextmanager
def service(behaviour: Behaviour, context: ssl.SSLContext | None = None) -> Iterator[Service]:
    running = Service(behaviour, context)
    thread = threading.Thread(target=running.accept)
    thread.start()
    try:
        yield running
    finally:
        for each in (running.listener, *running.open):
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)
        running.listener.close()
        for worker in (thread, *running.threads):
            worker.join(10)
            assert not worker.is_alive()


def response(content: object, *headers: str, status: str = "200 OK") -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]).encode() + body


def good(request: dict[str, Any]) -> bytes:
    return response({"id": request["id"], "outputs": [sum(request["data"])] * request["n"]})


def answer(connection: socket.socket, request: dict[str, Any]) -> None:
    connection.sendall(good(request))


def saying(raw: bytes) -> Behaviour:
    return lambda connection, _: connection.sendall(raw)
