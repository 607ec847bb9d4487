"""A service that counts with two-sided geometric noise, and that dpaudit can audit; the standard library suffices.

python examples/targets/noisy_count_server.py --port 8000
dpaudit attack http://127.0.0.1:8000/ --claim epsilon=1 --relation add-remove-one --domain 0,1
"""

from __future__ import annotations

import argparse
import json
import random
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def bernoulli(rng: random.Random) -> bool:
    """True with probability 1/e exactly: 1/k! is the probability that the first k tries below succeed."""
    k = 1
    while rng.randrange(k) == 0:
        k += 1
    return k % 2 == 1


def geometric(rng: random.Random, epsilon: int) -> int:
    """At least k with probability exp(-epsilon k)."""
    k = 0
    while all(bernoulli(rng) for _ in range(epsilon)):
        k += 1
    return k


def answer(request: dict[str, Any], epsilon: int) -> dict[str, Any]:
    """Answer one request of the protocol: n noisy sums of the rows, each an integer from 0 to 1."""
    rng = random.Random(request["seed"]) if request.get("seed") is not None else random.SystemRandom()
    total = sum(min(max(int(row), 0), 1) for row in request["data"])
    outputs = [total + geometric(rng, epsilon) - geometric(rng, epsilon) for _ in range(request["n"])]
    return {"hello": {"protocol": 1, "seeded": True}, "id": request["id"], "outputs": outputs}


class Handler(BaseHTTPRequestHandler):
    """Requests in the body of a POST."""

    protocol_version = "HTTP/1.1"  # keeps the connection open
    disable_nagle_algorithm = True  # or each response waits for 40 ms
    epsilon = 1

    def do_POST(self) -> None:
        """Answer a request; what our own code raises is the protocol's error."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            content = answer(request, self.epsilon)
        except Exception as error:  # noqa: BLE001 - it is an outcome of the mechanism
            content = {"id": request["id"], "error": {"type": type(error).__name__, "message": str(error)}}
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep requests, which hold private data, out of logs."""


def server(port: int, epsilon: int = 1) -> ThreadingHTTPServer:
    """A server on this machine only; port 0 is any free one."""
    handler = type("Handler", (Handler,), {"epsilon": epsilon})
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, default=8000)
    options.add_argument("--epsilon", type=int, default=1, help="another epsilon than the 1 that it claims")
    given = options.parse_args()
    with server(given.port, given.epsilon) as running:
        print(f"http://127.0.0.1:{running.server_port}/", flush=True)
        running.serve_forever()
