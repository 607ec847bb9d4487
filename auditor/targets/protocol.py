"""Lines of JSON between the auditor and a target of its own process or machine; nothing from a target is evaluated.

=============  =====================================================================================================
message        form
=============  =====================================================================================================
hello          ``{"hello": {"protocol": 1, "seeded": bool, "interactive": bool, "states": {...}}}``: optional, first
request        ``{"id": 1, "data": ..., "n": 1000, "seed": 7}``; the seed is an integer below 2^53, or null
answer         ``{"id": 1, "outputs": [...]}``, n of them; or, if all are of one type that JSON does not have,
               ``{"id": 1, "outputs": {"__type__": "float32", "value": [...]}}``
failure        ``{"id": 1, "error": {"type": "ValueError", "message": "..."}}``: the target's own code raised
=============  =====================================================================================================

The helper says ``"inferred": true`` in its hello where only the names of parameters tell that a function is seeded, and
``"replays": true`` where it can replay; it then answers ``{"id": 1, "replay": {...}}`` with an output and its recorded
draws, see `auditor.targets.replays`.

A target ignores members that it does not know. How datasets and outputs are written: see `auditor.targets.wire_format`.

Source: design of the audit's targets, after JSON lines (https://jsonlines.org) and RFC 8259.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.errors import TargetError, TargetRaised
from auditor.targets.outputs import Batch, Typed
from auditor.targets.raises import show_error
from auditor.targets.wire_format import NESTING, as_array, data_text, decode_json, is_deeper, is_name

#: Version of the protocol.
PROTOCOL = 1
#: Most draws of a request: a target of 20 milliseconds a draw answers in 20 s, well within the default limit of 60 s,
#: and a round trip of 0.1 ms costs 0.1 microseconds a draw.
REQUEST = 1000
#: Draws of the first request of a call, whose answer tells how many draws fit into the next ones. Few, so that outputs
#: of 100,000 numbers can be drawn (4 of them are 8 MB); arbitrary otherwise. It is asked in every call anew: what is
#: asked must not depend on what else this process was asked before, or results would depend on the number of workers.
FIRST_REQUEST = 4
#: Most bytes of an answer. JSON read by Python fills up to 30 times its length, so this bounds memory by 500 MB for the
#: worst answer (empty lists), and by 200 MB for one of numbers; and the time that reading it takes, by a few seconds.
LINE = 16 * 2**20
#: Most bytes of a hello; arbitrary.
HELLO = 2**16
#: Part of `LINE` that requests are sized to fill, as lengths of outputs vary.
_FILL = 4
#: Characters of what a target said that an error quotes; arbitrary, about two lines.
_QUOTED = 200
#: Seeds are below this: every language reads these integers exactly, also one that has floats only.
SEEDS = 2**53

_HELLO_FIRST = re.compile(rb'\s*\{\s*"hello"\s*:')


@dataclass(frozen=True)
class Hello:
    """First message of a target, about itself.

    Parameters
    ----------
    protocol : int
        Version that it speaks.
    seeded : bool
        The same request with the same seed, which is not null, gets the same answer.
    interactive : bool
        It opens sessions, see `auditor.targets.interactive_process`.
    states : mapping
        Free: what else it says, such as ``{"noise": {"distribution": "laplace", "scale": 2.0, "sensitivity": 1}}``.
    replays : bool
        It runs with recorded draws, see `auditor.targets.replays`.
    inferred : bool
        ``seeded`` is inferred from the names of the function's parameters, not stated by its author.
    """

    protocol: int = PROTOCOL
    seeded: bool = False
    interactive: bool = False
    states: Mapping[str, Any] = field(default_factory=dict)
    replays: bool = False
    inferred: bool = False


def request_line(id: int, text: str, n: int, seed: int | None) -> bytes:  # noqa: A002 - the name in the message
    """Write a request.

    Parameters
    ----------
    id : int
        Number of the request, which the answer repeats.
    text : str
        The dataset, from `data_text`.
    n : int
        Number of draws.
    seed : int or None
        Below `SEEDS`; None asks for the target's own entropy.
    """
    return f'{{"id":{id},"data":{text},"n":{n},"seed":{"null" if seed is None else seed}}}\n'.encode("ascii")


def draw_outputs(
    exchange: Callable[[bytes], bytes], ids: Iterator[int], data: Any, n: int, rng: np.random.Generator | None
) -> Batch:
    """Draw ``n`` outputs by requests of at most `REQUEST` draws.

    Parameters
    ----------
    exchange : callable
        Sends a request, a line, and returns the line that answers it, at most `LINE` bytes.
    ids : iterator of int
        Numbers of the requests to come.
    data : object
        The dataset.
    n : int
        Number of draws.
    rng : numpy.random.Generator or None
        Source of the requests' seeds; None sends none, and a target then has its own entropy. Seeds are sent whether
        or not the target has said yet that it is seeded, so that nothing depends on when it says so.

    Returns
    -------
    list of n outputs, or ndarray of shape (n,) or (n, ...)
        An array if all outputs are of one type of numpy's that JSON does not have, such as float32.

    Raises
    ------
    TargetError
        From ``exchange``, or if the answer cannot be read; `TargetRaised` if the target's code raised.
    SpecificationError
        If the dataset cannot be written as JSON.

    Notes
    -----
    How many draws are asked for next depends on the lengths of past outputs of this call, and on nothing else. Valid
    because: given the past, the next draws are independent and follow the mechanism's distribution, however many are
    asked for.
    """
    text = data_text(data)
    outputs: list[Any] = []
    longest = 1.0  # bytes a draw
    while len(outputs) < n:
        size = FIRST_REQUEST if not outputs else max(1, min(REQUEST, int(LINE / _FILL / longest)))
        size = min(size, n - len(outputs))
        number = next(ids)
        seed = None if rng is None else int(rng.integers(SEEDS))
        raw = exchange(request_line(number, text, size, seed))
        longest = max(longest, len(raw) / size)
        outputs += read_answer(raw, number, size)
    return as_array(outputs)


def read_answer(raw: bytes, id: int, n: int) -> list[Any]:  # noqa: A002 - the name in the message
    """Read the answer to a request for ``n`` draws.

    How numbers are read: see `auditor.targets.wire_format`.

    Parameters
    ----------
    raw : bytes
        The answer, one line.
    id : int
        Number of the request.
    n : int
        Draws that were asked for.

    Raises
    ------
    TargetRaised
        If the target says that its code raised.
    TargetError
        If this is no answer to the request; it quotes what came.
    """
    message = read_message(raw, id)
    if "outputs" not in message:
        raise quote_unreadable("the target answered without outputs", raw)
    outputs = message["outputs"]
    if isinstance(outputs, Typed) and isinstance(outputs.value, list):
        outputs = [Typed(outputs.kind, value) for value in outputs.value]
    if not isinstance(outputs, list):
        raise quote_unreadable("the target's outputs are no list", raw)
    if len(outputs) != n:
        raise quote_unreadable(f"{n} outputs were asked for, the target answered with {len(outputs)}", raw)
    if is_deeper(outputs, NESTING + 1):
        raise quote_unreadable(f"the target's outputs are nested more than {NESTING} deep", raw)
    return outputs


def read_message(raw: bytes, id: int) -> dict[str, Any]:  # noqa: A002 - the name in the message
    """Read an answer to message ``id``, of whatever kind; raises as `read_answer`.

    Parameters
    ----------
    raw : bytes
        The answer, one line.
    id : int
        Number of the message.
    """
    message = _object_of(raw)
    number = message.get("id")
    if type(number) is not int or number != id:
        raise quote_unreadable(f"the target did not answer message {id}", raw)
    if message.get("error") is not None:  # some languages write null where there is none
        raise _failure(message, raw)
    return message


def is_hello(raw: bytes) -> bool:
    """Whether a target's first line is its greeting."""
    return _HELLO_FIRST.match(raw) is not None


def read_hello(raw: bytes) -> Hello:
    """Read a target's greeting.

    Raises
    ------
    TargetError
        If it cannot be read, or is of another protocol.
    """
    if len(raw) > HELLO:
        raise quote_unreadable(f"the target's hello is longer than {HELLO} bytes", raw)
    return hello_of(_object_of(raw).get("hello"), raw)


def hello_of(said: Any, raw: bytes) -> Hello:
    """Read the member "hello" of a message ``raw``; raises as `read_hello`.

    Parameters
    ----------
    said : object
        The member, as JSON was read.
    raw : bytes
        The message, for a quotation.
    """
    if not isinstance(said, dict):
        raise quote_unreadable("the target's hello is no object", raw)
    protocol, states = said.get("protocol", PROTOCOL), said.get("states", {})
    seeded, interactive = said.get("seeded", False), said.get("interactive", False)
    if type(protocol) is not int or protocol != PROTOCOL:
        raise quote_unreadable(f"the target does not speak version {PROTOCOL} of the protocol", raw)
    if not isinstance(seeded, bool) or not isinstance(interactive, bool) or not isinstance(states, dict):
        raise quote_unreadable("a target's hello has seeded and interactive, true or false, and states, an object", raw)
    if is_deeper([states], NESTING + 1):
        raise quote_unreadable(f"the target's states are nested more than {NESTING} deep", raw)
    return Hello(
        protocol, seeded, interactive, states, said.get("replays") is True, seeded and said.get("inferred") is True
    )


def quote_unreadable(what: str, raw: bytes) -> TargetError:
    """Make the error of an unreadable answer, with a quotation.

    ``public`` has nothing of it.

    Parameters
    ----------
    what : str
        What is wrong, without anything of the answer.
    raw : bytes
        The answer.
    """
    return TargetError(f"{what}: {quote_bytes(raw)}", public=what)


def quote_bytes(raw: bytes, most: int = _QUOTED, end: bool = False) -> str:
    """Quote at most ``most`` characters, without control characters.

    Parameters
    ----------
    raw : bytes
        What it said.
    most : int
        Characters, about.
    end : bool
        Its end instead of its beginning.
    """
    part = raw[-4 * most :] if end else raw[: 4 * most]  # a character has at most four bytes
    text = part.decode("utf-8", errors="backslashreplace")
    text = text.strip("\r\n")
    cut = len(text) > most or len(part) < len(raw)
    text = text[-most:] if end else text[:most]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    if not cut:
        return f"'{shown}'"
    return f"the last of {len(raw)} bytes '...{shown}'" if end else f"'{shown}...' ({len(raw)} bytes)"


def _object_of(raw: bytes) -> dict[str, Any]:
    try:
        message = decode_json(raw)
    except ValueError as error:
        raise quote_unreadable(f"the target's answer cannot be read ({error})", raw) from None
    if type(message) is not dict:
        raise quote_unreadable("the target answered with JSON that is no object", raw)
    return message


def _failure(message: dict[str, Any], raw: bytes) -> TargetError:
    error = message["error"]
    if not isinstance(error, dict) or "outputs" in message or not is_name(error.get("type")):
        return quote_unreadable("the target answered with an error of another form than an object with a type", raw)
    what = f"the target raised {error['type']}"
    said = quote_bytes(str(error.get("message", "")).encode("utf-8", errors="backslashreplace"))
    return TargetRaised(error["type"], f"{what}: {said}", public=f"the target raised {show_error(error['type'])}")
