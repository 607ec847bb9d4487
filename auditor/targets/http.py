"""Services as targets: the protocol's request in the body of a POST, its answer in the body of the response."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from functools import partial
from http.client import HTTPException, RemoteDisconnected
from types import TracebackType
from typing import Any, Self
from urllib.parse import SplitResult, urlsplit

import numpy as np

from auditor.errors import SpecificationError, TargetError, TargetRaised, check_positive
from auditor.targets.http_connection import LateError, Reply, Service, TooLongError
from auditor.targets.outputs import Batch
from auditor.targets.protocol import (
    HELLO,
    LINE,
    Hello,
    draw_outputs,
    hello_of,
    quote_bytes,
    quote_unreadable,
    read_message,
)
from auditor.targets.redacted import without_secrets
from auditor.targets.wire_format import decode_json

#: Headers that are this module's business.
_OWN = {"host", "content-length", "content-type", "accept", "accept-encoding", "transfer-encoding", "connection"}
#: Variables that name a proxy, also in capitals; none is used.
_PROXIES = {"http_proxy", "https_proxy", "all_proxy"}
#: What RFC 9110 has as the name of a header, and as its value.
_NAME, _VALUE = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"), re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")


class HttpTarget:
    """A mechanism behind a URL.

    Each request is a POST of the protocol's request object as ``application/json``; the response's body is the
    protocol's answer, with status 200. The first answer may hold "hello" beside its outputs, as an object with what a
    process says in its first line. An answer of the protocol's error object may have any status.

    The datasets go to exactly this URL: redirects are not followed, proxies that the environment names and cookies are
    not used, and the certificate of an ``https`` service is verified. No request is sent twice, not even after a
    failure: whether it fails may depend on the data, and draws that are repeated until they succeed do not have the
    mechanism's distribution. So that a connection which the service has closed meanwhile is no failure, one that is
    idle for longer than `auditor.targets.http_connection.IDLE`, or that the service has closed or written into, is
    opened anew before anything is sent. What is left, that a service closes a connection in the instant in which a
    request is sent, is an error.

    Parameters
    ----------
    url : str
        An ``http`` or ``https`` URL without a user's name and without a fragment.
    limit : float
        Seconds that one request may take, from looking up the host's name to the last byte of the response.
    headers : mapping of str to str, optional
        Further headers of each request, such as Authorization. They are never shown.

    Attributes
    ----------
    shown : str
        The URL without its query, which may hold secrets. This is what errors and reports name.
    hello : Hello or None
        What the service says of itself; None before the first answer.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be.
    """

    def __init__(self, url: str, *, limit: float = 60.0, headers: Mapping[str, str] | None = None) -> None:
        parts = check_url(url)
        context = ssl.create_default_context() if parts.scheme == "https" else None
        self._url, self._headers = url, _check_headers(headers or {})
        sent = {**self._headers, "Content-Type": "application/json", "Accept": "application/json"}
        self.shown, self.limit = without_secrets(url), check_positive("limit", limit)
        self.hello: Hello | None = None
        self._service = Service(parts, sent, self.limit, context)
        self._id = 0

    @property
    def seeded(self) -> bool:
        """Whether the service states that its seed decides draws."""
        return self.hello is not None and self.hello.seeded

    def __call__(self, data: Any, n: int, rng: np.random.Generator | None) -> Batch:
        """Draw ``n`` outputs, see `auditor.targets.protocol.draw_outputs`.

        Raises
        ------
        TargetRaised
            If the service answers with the protocol's error object.
        TargetError
            If it answers anything else, nothing within the limit, or cannot be reached.
        """
        return draw_outputs(self._exchange, self._numbers(), data, n, rng)

    def close(self) -> None:
        """Close the connection; a later call opens another."""
        self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(HttpTarget, self._url, limit=self.limit, headers=self._headers), ()

    def __repr__(self) -> str:
        return f"HttpTarget({self.shown!r})"

    def _numbers(self) -> Iterator[int]:
        while True:
            self._id += 1
            yield self._id

    def _exchange(self, line: bytes) -> bytes:
        try:
            reply = self._service.post(line)
        except Exception as error:  # the standard library raises many for what is not HTTP
            raise self._failure(error) from error
        if reply.encoding.lower() not in ("", "identity"):
            what = f"{self.shown} answered in an encoding that was not asked for"
            raise TargetError(f"{what}: {quote_bytes(reply.encoding.encode())}", public=what)
        if reply.status != 200:
            raise self._refusal(reply)
        if self.hello is None:
            self.hello = _hello_in(reply.body)
        return reply.body

    def _failure(self, error: Exception) -> TargetError:
        """What became of a request that got no response."""
        if isinstance(error, LateError | TimeoutError):
            return TargetError(f"{self.shown} did not answer within {self.limit:g} s")
        if isinstance(error, TooLongError):
            return TargetError(f"{self.shown} answered with more than {LINE:,} bytes")
        if isinstance(error, ssl.SSLCertVerificationError):
            what = f"the certificate of {self.shown} cannot be verified: {error.verify_message}"
            return TargetError(f"{what}; SSL_CERT_FILE names a file of certificates to trust, such as its own")
        if isinstance(error, RemoteDisconnected):
            what = f"{self.shown} closed the connection without an answer"
            if self._service.reused:
                what += "; if it closes connections after answers, these must say so, by the header Connection: close"
            return TargetError(what)
        if isinstance(error, OSError):
            what = f"no connection to {self.shown}, or it broke: {error}"
            proxies = [name for name in os.environ if name.lower() in _PROXIES and os.environ[name]]
            return TargetError(what + (f"; ${proxies[0]} is not used, datasets go to no proxy" if proxies else ""))
        what = f"{self.shown} did not answer in HTTP, or broke off"
        kind = type(error).__name__ if isinstance(error, HTTPException) else "malformed response"
        return TargetError(f"{what}: {kind}: {quote_bytes(str(error).encode(errors='backslashreplace'))}", public=what)

    def _refusal(self, reply: Reply) -> TargetError:
        """What a response of another status than 200 means."""
        what = f"{self.shown} answered with status {reply.status}, expected 200"
        if 300 <= reply.status < 400:
            what += "; redirects are not followed"
            return TargetError(f"{what}, this one to {_redirect_host(reply.location)}", public=what)
        try:
            read_message(reply.body, self._id)
        except TargetRaised as error:
            return error
        except TargetError:
            pass  # any other body: what matters is the status
        said = quote_bytes(reply.reason.encode(errors="backslashreplace")) + " " + quote_bytes(reply.body)
        what += "; no request is sent twice, so the audit needs it without a limit of requests" * (reply.status == 429)
        return TargetError(f"{what}: {said}", public=what)


def check_url(url: str) -> SplitResult:
    """Take the URL of a service apart.

    Raises
    ------
    SpecificationError
        If it is not an http or https URL, or has a user's name, a password or a fragment. Secrets in it are not shown.
    """
    name = without_secrets(url)
    if not re.fullmatch(r"[\x21-\x7e]+", url):
        raise SpecificationError(f"URL {name!r}: expected ASCII without spaces; write others as %20 and the like")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")  # as looking up the name does
    except ValueError:  # which quotes what may be a password
        raise SpecificationError(f"URL {name!r} cannot be read: wrong host or port") from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise SpecificationError(f"URL {name!r}: expected http://HOST[:PORT]/PATH or https://...")
    if "@" in parts.netloc:
        raise SpecificationError(
            f"URL {name!r}: a user's name or password does not belong into it; give a header to HttpTarget instead"
        )
    if "#" in url:
        raise SpecificationError(f"URL {name!r}: a fragment is never sent, leave out '#{parts.fragment}'")
    return parts


def _check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name.lower() in _OWN:
            raise SpecificationError(f"header {name!r}: expected one such as Authorization, and none of {sorted(_OWN)}")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise SpecificationError(f"header {name!r}: its value (not shown) must be printable ASCII")
    return dict(headers)


def _hello_in(body: bytes) -> Hello:
    """What the first answer says of the service; a body that cannot be read is reported by who reads its outputs."""
    try:
        message = decode_json(body)
    except ValueError:
        return Hello()
    if not isinstance(message, dict) or "hello" not in message:
        return Hello()
    found = hello_of(message["hello"], body)
    if len(repr(message["hello"])) > HELLO:
        raise quote_unreadable(f"the service's hello is longer than {HELLO} characters", body)
    return found


def _redirect_host(location: str) -> str:
    """Host that a redirect leads to; the rest of it may repeat a secret."""
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    return f"host {quote_bytes(host.encode(errors='backslashreplace'))}" if host else "the same host"
