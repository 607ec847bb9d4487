"""Runs of a training that are kept on disk: one file of lines, to which each run is added as it ends.

The first line says what was run; each further line holds the output of one run and a checksum. A process that is killed
loses the runs that it was in the middle of, and no other.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.datasets.json_codec import parse_json_object, write_json_line
from auditor.errors import SpecificationError
from auditor.targets.sources import hash_bytes

Array = NDArray[np.float64]

SCHEMA = "dpaudit-runs/1"
NAME = "runs.jsonl"


class KeptRuns:
    """Outputs of runs, in a file.

    Parameters
    ----------
    directory : Path
        Folder of the file; it is made if it is not there.
    about : mapping of str to str, int or float
        What is run: of two that differ the runs must not be mixed.

    Attributes
    ----------
    outputs : dict of int to ndarray
        By the number of the run.
    unreadable : int
        Lines that cannot be read; their runs are run again.

    Raises
    ------
    SpecificationError
        If the file is of other runs, or is no such file; nothing is changed then.
    """

    def __init__(self, directory: Path, about: Mapping[str, Any]) -> None:
        self.path = directory / NAME
        self.outputs: dict[int, Array] = {}
        self.unreadable = 0
        self._torn = False
        try:
            if self.path.exists():
                self._read(dict(about))
            else:
                directory.mkdir(parents=True, exist_ok=True)
                partial = self.path.with_name(f"{NAME}.{os.getpid()}.part")
                partial.write_bytes(write_json_line({"schema": SCHEMA, "about": dict(about)}))
                partial.replace(self.path)
        except FileExistsError:
            raise SpecificationError(f"directory must be a folder, got the file {str(directory)!r}") from None
        except OSError as error:
            raise SpecificationError(f"directory {str(directory)!r} cannot keep runs: {error}") from error

    def add(self, run: int, output: Array) -> None:
        """Keep the output of a run on the disk.

        Parameters
        ----------
        run : int
            Its number.
        output : ndarray
            Its output.
        """
        line = write_json_line(_write_output(run, output))
        with self.path.open("ab", buffering=0) as file:
            file.write(b"\n" + line if self._torn else line)
            os.fsync(file.fileno())
        self._torn = False
        self.outputs[run] = output

    def _read(self, about: dict[str, Any]) -> None:
        first, *lines = self.path.read_bytes().split(b"\n")
        head = parse_json_object(first)
        if head is None or head.get("schema") != SCHEMA or not isinstance(head.get("about"), dict):
            raise SpecificationError(f"{str(self.path)!r} holds no runs: its first line has not the schema {SCHEMA!r}")
        kept = head["about"]
        differing = [
            f"{name} is {kept.get(name)!r} there and {about.get(name)!r} here"
            for name in sorted({*kept, *about})
            if kept.get(name) != about.get(name)
        ]
        if differing:
            raise SpecificationError(
                f"{str(self.path)!r} holds other runs: {'; '.join(differing)}. Give another directory, or what they "
                "were run with"
            )
        self._torn = bool(lines) and lines[-1] != b""
        for line in filter(None, lines):
            try:
                run, output = _read_output(json.loads(line))
            except (ValueError, KeyError, TypeError):
                self.unreadable += 1
            else:
                self.outputs.setdefault(run, output)


def _write_output(run: int, output: Array) -> dict[str, Any]:
    content = np.ascontiguousarray(output, dtype="<f8").tobytes()
    entry = {"run": run, "shape": list(output.shape), "output": base64.b64encode(content).decode("ascii")}
    return entry | {"check": _checksum(entry)}


def _read_output(entry: Mapping[str, Any]) -> tuple[int, Array]:
    if entry["check"] != _checksum({name: entry[name] for name in ("run", "shape", "output")}):
        raise ValueError("checksum")
    content = base64.b64decode(entry["output"], validate=True)
    return int(entry["run"]), np.frombuffer(content, dtype="<f8").reshape(entry["shape"]).astype(np.float64)


def _checksum(entry: Mapping[str, Any]) -> str:
    return hash_bytes(write_json_line(entry))
