"""Services: what is sent, to whom, and how whatever comes back ends."""

from __future__ import annotations

import math
import pickle
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor import PureDP, audit
from auditor.datasets import Pair
from auditor.errors import SpecificationError, TargetError, TargetRaised
from auditor.targets import http_connection as connecting
from auditor.targets.callables import load_file
from auditor.targets.http import HttpTarget
from auditor.targets.protocol import REQUEST, Hello
from auditor.targets.sampler import Sampler
from tests.targets.services import Behaviour, answer, good, response, saying, service

EXAMPLE = Path(__file__).parents[2] / "examples" / "targets" / "noisy_count_server.py"
DATA = np.array([1, 0, 1])


@pytest.fixture(autouse=True)
def never_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are counted below, and a busy machine may pause for long."""
    monkeypatch.setattr(connecting, "IDLE", math.inf)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def no_thread_is_left() -> bool:
    end = time.monotonic() + 5
    while any(thread.name == "dpaudit-http" for thread in threading.enumerate()):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


# ------------------------------------------------------------------------------------- what is sent


def test_a_request_is_one_post_of_the_protocol_to_exactly_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    with (
        service(answer) as running,
        HttpTarget(running.url + "?key=hidden", headers={"Authorization": "Bearer hidden"}) as target,
    ):
        assert target(DATA, 3, rng()) == [2, 2, 2]
        head = running.heads[0].lower()
        assert head.startswith("post /count?key=hidden http/1.1\r\n")
        assert "content-type: application/json\r\n" in head
        assert "accept-encoding: identity\r\n" in head
        assert "authorization: bearer hidden\r\n" in head
        assert "cookie" not in head
        (request,) = running.requests
        assert request.keys() == {"id", "data", "n", "seed"}
        assert request["data"] == [1, 0, 1]
        assert request["n"] == 3
        assert 0 <= request["seed"] < 2**53
        assert "hidden" not in repr(target) + target.shown


def test_large_batches_are_cut_and_share_a_connection() -> None:
    with service(answer) as running, HttpTarget(running.url) as target:
        assert len(target(DATA, 2 * REQUEST + 500, rng())) == 2 * REQUEST + 500
        assert len(target(DATA, 1, rng())) == 1
        assert running.connections == 1
        assert max(request["n"] for request in running.requests) == REQUEST
        assert len({request["id"] for request in running.requests}) == len(running.requests)


def test_the_same_generator_sends_the_same_seeds() -> None:
    with service(answer) as running, HttpTarget(running.url) as target:
        target(DATA, 20, rng())
        target(DATA, 20, rng())
        seeds = [request["seed"] for request in running.requests]
    half = len(seeds) // 2
    assert seeds[:half] == seeds[half:]
    assert len(set(seeds[:half])) == half


# ------------------------------------------------------------------------------------- connections


@pytest.mark.parametrize("header", ["Connection: keep-alive", "Connection: close"])
def test_a_connection_that_was_closed_meanwhile_is_opened_anew(header: str) -> None:
    closed = threading.Event()

    def once(connection: socket.socket, request: dict[str, Any]) -> None:
        connection.sendall(good(request).replace(b"\r\n\r\n", f"\r\n{header}\r\n\r\n".encode(), 1))
        connection.shutdown(socket.SHUT_RDWR)
        closed.set()

    with service(once) as running, HttpTarget(running.url) as target:
        for _ in range(3):
            closed.clear()
            assert target(DATA, 1, rng()) == [2]
            assert closed.wait(10)
        assert (running.connections, len(running.requests)) == (3, 3)


def test_a_connection_that_was_idle_for_long_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "IDLE", 0.05)
    with service(answer) as running, HttpTarget(running.url) as target:
        target(DATA, 1, rng())
        time.sleep(0.1)
        target(DATA, 1, rng())
        assert running.connections == 2


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="the system decides alone when it acknowledges")
def test_a_service_that_writes_head_and_body_one_by_one_is_not_slowed() -> None:
    def in_two(connection: socket.socket, request: dict[str, Any]) -> None:
        head, end, body = good(request).partition(b"\r\n\r\n")
        connection.sendall(head + end)
        connection.sendall(body)

    seconds = []
    with service(in_two) as running, HttpTarget(running.url) as target:
        for _ in range(25):
            begun = time.monotonic()
            target(DATA, 1, rng())
            seconds.append(time.monotonic() - begun)
        assert running.connections == 1
    # A fresh connection is acknowledged at once in any case; later each request took 40 ms at least.
    assert min(seconds[-10:]) < 0.03


def test_a_request_that_may_have_arrived_is_never_sent_again() -> None:
    def drop_the_second(connection: socket.socket, request: dict[str, Any]) -> None:
        if len(running.requests) == 2:
            connection.shutdown(socket.SHUT_RDWR)
        else:
            connection.sendall(good(request))

    with service(drop_the_second) as running, HttpTarget(running.url) as target:
        assert target(DATA, 1, rng()) == [2]
        with pytest.raises(TargetError, match=r"without an answer; if it closes .* Connection: close"):
            target(DATA, 1, rng())
        assert len(running.requests) == 2
        assert target(DATA, 1, rng()) == [2]  # a later call is served
        assert len(running.requests) == 3


def test_an_interrupted_call_leaves_no_answer_for_the_next_one() -> None:
    def slow_first(connection: socket.socket, request: dict[str, Any]) -> None:
        if len(running.requests) == 1:
            time.sleep(0.6)
        connection.sendall(good(request))

    with service(slow_first) as running, HttpTarget(running.url) as target:
        with pytest.raises(TargetError, match=r"0\.2 s"):
            Sampler(target, 0, "interrupted", limit=0.2).draw(DATA, 1)
        assert target(DATA, 1, rng()) == [2]
        assert running.connections == 2
    assert no_thread_is_left()


# ------------------------------------------------------------------------------------- what comes back


def endless(start: bytes, piece: bytes, pause: float = 0.0) -> Behaviour:
    def send(connection: socket.socket, _: dict[str, Any]) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(piece)
            time.sleep(pause)

    return send


def truncated(connection: socket.socket, request: dict[str, Any]) -> None:
    connection.sendall(good(request)[:-3])
    connection.shutdown(socket.SHUT_RDWR)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MEGABYTE = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
HOSTILE: dict[str, tuple[Behaviour, str]] = {
    "status 500": (saying(response(b"SECRET oops", status="500 Broken")), "status 500.*SECRET oops"),
    "status 204": (saying(b"HTTP/1.1 204 No Content\r\n\r\n"), "status 204"),
    "status 429": (saying(response(b"SECRET", status="429 SECRET")), "status 429.*no request is sent twice.*SECRET"),
    "a byte order mark": (saying(response(b'\xef\xbb\xbf{"id": 1, "outputs": [1, 1]}')), "a byte order mark is before"),
    "status 401": (saying(response(b"", status="401 SECRET")), "status 401.*SECRET"),
    "garbage": (saying(response(b"SECRET")), "SECRET"),
    "no object": (saying(response([1, "SECRET"])), "SECRET"),
    "wrong id": (saying(response({"id": 99, "outputs": ["SECRET"]})), "SECRET"),
    "too few": (saying(response({"id": 1, "outputs": ["SECRET"]})), "2 outputs were asked for"),
    "wrong hello": (saying(response({"hello": "SECRET", "id": 1, "outputs": [1, 1]})), "hello"),
    "other protocol": (saying(response({"hello": {"protocol": 7}, "id": 1, "outputs": [1, 1]})), "version 1"),
    "long hello": (
        saying(response({"hello": {"states": {"SECRET": "x" * 2**17}}, "id": 1, "outputs": [1, 1]})),
        "hello is longer",
    ),
    "gzip": (saying(response(b"\x1f\x8b", "Content-Encoding: gzip")), "encoding that was not asked for.*gzip"),
    "absurd length": (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\n{"), "more than"),
    "truncated": (truncated, "broke off"),
    "endless body": (endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 2**20), "more than"),
    "endless chunks": (endless(CHUNKED, MEGABYTE), "more than"),
    "a chunk without end": (endless(CHUNKED + b"-1\r\n", b"x" * 2**20), "more than"),
    "a chunk of negative length": (saying(CHUNKED + b"-5\r\nSECRET"), "not answer in HTTP"),
    "a chunk of no length": (saying(CHUNKED + b"SECRET\r\n"), "not answer in HTTP"),
    "not HTTP": (saying(b"SECRET\r\n\r\n"), "not answer in HTTP.*SECRET"),
    "a long line": (saying(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**17), "not answer in HTTP"),
    "endless headers": (endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), "not answer in HTTP"),
    "endless continue": (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 9000), "more than|within 0.5 s"),
    "hangs": (lambda *_: time.sleep(1), "within 0.5 s"),
    "drips headers": (endless(b"HTTP/1.1 200 OK\r\nX: ", b"y", 0.05), "within 0.5 s"),
    "drips a body": (endless(b"HTTP/1.1 200 OK\r\n\r\n", b" ", 0.05), "within 0.5 s"),
    "drips chunks": (endless(CHUNKED, b"1\r\n \r\n", 0.05), "within 0.5 s"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_service_is_an_error_within_its_limit(name: str) -> None:
    behaviour, said = HOSTILE[name]
    limit = 0.5 if "within" in said else 30.0
    with service(behaviour) as running, HttpTarget(running.url, limit=limit) as target:
        begun = time.monotonic()
        with pytest.raises(TargetError) as caught:
            target(DATA, 2, rng())
        assert time.monotonic() - begun < limit + 5
        assert re.search(said, str(caught.value), re.DOTALL), caught.value
        assert "SECRET" not in caught.value.public
        assert len(str(caught.value)) < 800
        assert len(running.requests) == 1
        assert no_thread_is_left()  # while the service goes on


def test_a_service_that_does_not_read_is_an_error_within_its_limit() -> None:
    # 64 MB are more than the buffers of both ends hold.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = HttpTarget(f"http://127.0.0.1:{listener.getsockname()[1]}/", limit=0.5)
        begun = time.monotonic()
        with pytest.raises(TargetError, match=r"within 0\.5 s"):
            target("x" * 2**26, 1, rng())
        assert time.monotonic() - begun < 5
        assert no_thread_is_left()


def test_a_service_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TargetError, match=r"no connection.*refused$"):
        HttpTarget(url)(DATA, 1, rng())
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9/")
    with pytest.raises(TargetError, match=r"\$HTTPS_PROXY is not used"):
        HttpTarget(url)(DATA, 1, rng())


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_redirects_are_not_followed(status: str) -> None:
    with service(answer) as other:
        where = other.url.replace("127.0.0.1", "localhost") + "?token=hidden"
        with service(saying(response(b"", f"Location: {where}", status=status))) as running:
            target = HttpTarget(running.url)
            with pytest.raises(TargetError, match=r"redirects are not followed.*localhost") as caught:
                target(DATA, 1, rng())
            assert "hidden" not in str(caught.value)
            target.close()
        assert other.connections == 0


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request", "500 Internal Server Error"])
def test_the_error_object_of_the_protocol_is_what_the_service_raised(status: str) -> None:
    content = {"id": 1, "error": {"type": "ValueError", "message": "SECRET"}}
    with (
        service(saying(response(content, status=status))) as running,
        HttpTarget(running.url) as target,
        pytest.raises(TargetRaised, match="SECRET") as caught,
    ):
        target(DATA, 1, rng())
    assert caught.value.error == "ValueError"
    assert "SECRET" not in caught.value.public


# ------------------------------------------------------------------------------------- certificates


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl to make a certificate with")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([program, "req", *words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


def test_a_certificate_is_verified(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with service(answer, context) as running:
        with (
            HttpTarget(running.url) as target,
            pytest.raises(TargetError, match="cannot be verified: self-signed certificate; SSL_CERT_FILE"),
        ):
            target(DATA, 1, rng())
        assert running.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        with HttpTarget(running.url) as target:
            assert target(DATA, 20, rng()) == [2] * 20
            assert len(running.requests) == 2
            assert running.connections == 2  # the refused one, and one for both requests
        with HttpTarget(running.url.replace("127.0.0.1", "localhost")) as target, pytest.raises(TargetError):
            target(DATA, 1, rng())  # a certificate of another name
    assert no_thread_is_left()


def test_a_handshake_that_never_ends_is_an_error_within_its_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = HttpTarget(f"https://127.0.0.1:{listener.getsockname()[1]}/", limit=0.5)
        with pytest.raises(TargetError, match=r"within 0\.5 s"):
            target(DATA, 1, rng())
        assert no_thread_is_left()


# ------------------------------------------------------------------------------------- what is refused at load


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://user:hidden@127.0.0.1/", "password"),
        ("http://hidden@127.0.0.1/", "password"),
        ("http://127.0.0.1/#part", "fragment"),
        ("http:///path", "expected http"),
        ("http://a..b/", "wrong host"),
        ("ftp://127.0.0.1/", "expected http"),
        ("http://127.0.0.1:99999/", "cannot be read"),
        ("http://127.0.0.1:0/", "expected http"),
        ("http://127.0.0.1/a b", "ASCII"),
        ("http://127.0.0.1/a\r\nX: y", "ASCII"),
        ("http://127.0.0.1/\N{GREEK SMALL LETTER EPSILON}", "ASCII"),
        ("http://[::1/", "cannot be read"),
        ("http:/?key=hidden", "expected http"),
    ],
)
def test_other_urls_are_refused(url: str, said: str) -> None:
    with pytest.raises(SpecificationError, match=said) as caught:
        HttpTarget(url)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "headers", [{"Host": "x"}, {"content-length": "1"}, {"A b": "c"}, {"": "c"}, {"Token": "hidden\r\nX: y"}, {"T": ""}]
)
def test_other_headers_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(SpecificationError, match="header") as caught:
        HttpTarget("http://127.0.0.1/", headers=headers)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), "1"])
def test_other_limits_are_refused(limit: Any) -> None:
    with pytest.raises(SpecificationError, match="limit"):
        HttpTarget("http://127.0.0.1/", limit=limit)


# ------------------------------------------------------------------------------------- the example


@contextmanager
def noisy_count(epsilon: int) -> Iterator[HttpTarget]:
    server = load_file(EXAMPLE).server(0, epsilon)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        with HttpTarget(f"http://127.0.0.1:{server.server_port}/") as target:
            yield target
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


PAIR = Pair(np.array([1, 0, 1]), np.array([1, 0]), "a one removed")


def test_the_example_keeps_its_claim_and_repeats_itself_under_one_seed() -> None:
    with noisy_count(1) as target:
        first, again = target(DATA, 50, rng()), target(DATA, 50, rng())
        assert first == again
        assert target.seeded
        # A false alarm has probability at most 1e-6.
        result = audit(target, PureDP(1.0), [PAIR], draws=20_000, alpha=1e-6)
    assert result.verdict in ("consistent", "inconclusive")
    assert result.draws >= 20_000


def test_a_service_that_fails_in_the_middle_of_an_audit_is_an_error() -> None:
    def failing(connection: socket.socket, request: dict[str, Any]) -> None:
        broken = len(running.requests) > 50
        connection.sendall(response(b"SECRET", status="503 Gone") if broken else good(request))

    with service(failing) as running, HttpTarget(running.url) as target:
        result = audit(target, PureDP(1.0), [PAIR], draws=20_000)
    assert result.verdict == "error"
    assert "status 503" in result.message


def test_the_example_with_half_the_noise_is_a_violation() -> None:
    # "At least 2" has probability 0.88 against 0.12, where 0.88 against 0.32 is allowed: 10,000 draws a side fail to
    # show that with a probability far below 1e-6.
    with noisy_count(2) as target:
        result = audit(target, PureDP(1.0), [PAIR], draws=20_000, alpha=1e-6)
    assert result.verdict == "violation"


def test_a_service_is_seeded_only_if_it_says_so() -> None:
    with service(answer) as running, HttpTarget(running.url) as target:
        target(DATA, 1, rng())
        assert target.hello == Hello()
        assert not target.seeded


def test_a_copy_has_a_connection_of_its_own() -> None:
    with service(answer) as running, HttpTarget(running.url + "?key=hidden", limit=7.0, headers={"T": "t"}) as target:
        target(DATA, 1, rng())
        with pickle.loads(pickle.dumps(target)) as other:
            assert other(DATA, 1, rng()) == [2]
            assert other.limit == 7.0
        assert target(DATA, 1, rng()) == [2]
        assert running.connections == 2
        assert running.heads[0] == running.heads[1]


def test_the_example_runs_as_a_program() -> None:
    with subprocess.Popen([sys.executable, str(EXAMPLE), "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            with HttpTarget(process.stdout.readline().strip()) as target:
                assert len(target(DATA, 30, rng())) == 30
                assert target.seeded
        finally:
            process.terminate()


def test_an_error_of_the_example_is_its_own() -> None:
    with noisy_count(1) as target, pytest.raises(TargetRaised, match="ValueError") as caught:
        target(["one"], 1, rng())
    assert caught.value.error == "ValueError"
