"""One POST after another to one service, each within a total time and a total size."""

from __future__ import annotations

import contextlib
import io
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from typing import Any
from urllib.parse import SplitResult

from auditor.targets.protocol import LINE

#: Seconds after which an idle connection is opened anew, rather than used when the service may just be closing it:
#: servers in common use keep one for two seconds or longer.
IDLE = 1.0
#: Most bytes of a response as they come: an answer, its headers, and what cutting it into chunks adds.
WIRE = 2 * LINE
#: Bytes that are read at once; arbitrary.
_PIECE = 1 << 16


class LateError(Exception):
    """The exchange was not over within its limit."""


class TooLongError(Exception):
    """The response has more bytes than it may have."""


@dataclass(frozen=True)
class Reply:
    """A response.

    Parameters
    ----------
    status : int
        Its status code.
    reason : str
        What the status line says beside it.
    location, encoding : str
        Headers ``Location`` and ``Content-Encoding``; empty where there are none.
    body : bytes
        As it came.
    """

    status: int
    reason: str
    location: str
    encoding: str
    body: bytes


class Service:
    """Posts to one URL over a connection that is kept.

    Parameters
    ----------
    url : SplitResult
        An ``http`` or ``https`` URL.
    headers : mapping of str to str
        Headers of every request.
    limit : float
        Seconds that an exchange may take, from looking up the name to the last byte of the response.
    context : ssl.SSLContext or None
        How to verify the service; None for ``http``.

    Attributes
    ----------
    reused : bool
        The latest request was sent over a connection that had carried an answer.
    """

    def __init__(
        self, url: SplitResult, headers: Mapping[str, str], limit: float, context: ssl.SSLContext | None
    ) -> None:
        self._url, self._headers, self._limit, self._context = url, dict(headers), limit, context
        self._connection: _Connection | None = None
        self._used = 0.0
        self.reused = False

    def post(self, body: bytes) -> Reply:
        """Send a request, once, and read the response.

        The exchange runs in a thread, which is left when the limit is past and ends when its socket is shut down: time
        limits of sockets hold for single reads, and looking up a name has none.

        Raises
        ------
        LateError
            If it takes longer than the limit.
        TooLongError
            If the response is too long.
        OSError, http.client.HTTPException, ValueError
            If there is no connection, it breaks, or what comes is not HTTP.
        """
        connection = self._usable_connection()
        self.reused = connection is self._connection
        future: Future[Reply] = Future()

        def work() -> None:
            try:
                future.set_result(connection.exchange(self._url, body, self._headers))
            except BaseException as error:  # noqa: BLE001 - it is raised where the future is read
                future.set_exception(error)

        self._connection = None  # until the exchange has ended well
        threading.Thread(target=work, name="dpaudit-http", daemon=True).start()
        late = True
        try:
            late = not wait([future], self._limit).done
        finally:
            if late:
                connection.abort()
                future.add_done_callback(lambda _: connection.close())
        if late:
            raise LateError
        try:
            reply = future.result()
        except BaseException:
            connection.close()
            raise
        self._connection, self._used = connection, time.monotonic()
        return reply

    def close(self) -> None:
        """Close the connection; a later request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _usable_connection(self) -> _Connection:
        """The connection, unless it was idle for long or the service has closed it or written into it meanwhile."""
        if self._connection is not None and (time.monotonic() - self._used > IDLE or self._connection.readable()):
            self.close()
        return self._connection or _Connection(self._url, self._limit, self._context)


class _Response(HTTPResponse):
    """A response of which at most so many bytes are read, whatever its lengths say: -1 as a chunk's means no end."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_BoundedStream(sock.makefile("rb", buffering=0)))


class _BoundedStream(io.RawIOBase):
    """At most `WIRE` bytes of a stream."""

    def __init__(self, stream: socket.SocketIO) -> None:
        self._stream, self._left = stream, WIRE

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what there is, up to the buffer's length."""
        count = self._stream.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise TooLongError
        return count

    def close(self) -> None:
        """Close the stream as well."""
        self._stream.close()
        super().close()


class _Connection(HTTPConnection):
    """A connection that another thread can abort, and whose responses are bounded."""

    response_class = _Response

    def __init__(self, url: SplitResult, limit: float, context: ssl.SSLContext | None) -> None:
        port = 80 if context is None else 443
        super().__init__(url.hostname or "", url.port or port, timeout=limit)
        self.default_port = port  # which the header Host does not name
        self._context = context
        self._wire: socket.socket | None = None
        self._aborted = False

    def connect(self) -> None:
        """Open the connection.

        The socket is known before the handshake, so that `abort` reaches that too.
        """
        self.sock = socket.create_connection((self.host, self.port), self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self._wire = self.sock  # http.client forgets its own while a response that ends with it is read
        if self._aborted:
            raise LateError
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def abort(self) -> None:
        """Let what another thread waits for on this connection fail."""
        self._aborted = True
        if self._wire is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._wire, socket.SHUT_RDWR)

    def readable(self) -> bool:
        """Whether the service closed the connection or wrote unasked.

        It is true, too, where there is no connection yet.
        """
        if self.sock is None:
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(self.sock, selectors.EVENT_READ)
            return bool(selector.select(0))

    def _acknowledge_quickly(self) -> None:
        """Acknowledge what comes next at once, where the system can.

        A service that writes headers and body one by one, as Python's own does, waits for it: 40 ms a request on Linux.
        """
        option = getattr(socket, "TCP_QUICKACK", None)
        if option is not None and self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.setsockopt(socket.IPPROTO_TCP, option, 1)

    def exchange(self, url: SplitResult, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send one request and read its response."""
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        if self.sock is None:
            self.connect()
        # A service may refuse a request before it has read it; what it says then is worth more than the broken pipe.
        with contextlib.suppress(BrokenPipeError):
            self.request("POST", path, body, dict(headers))
        self._acknowledge_quickly()
        response = self.getresponse()
        with response:
            if response.length is not None and response.length > LINE:
                raise TooLongError
            pieces, size = [], 0
            while piece := response.read(_PIECE):
                size += len(piece)
                if size > LINE:
                    raise TooLongError
                pieces.append(piece)
            if response.length:
                raise IncompleteRead(b"", response.length)
            header = response.headers.get
            return Reply(
                response.status,
                response.reason,
                header("Location", ""),
                header("Content-Encoding", ""),
                b"".join(pieces),
            )
