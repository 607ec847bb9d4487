"""A line of Python that makes an audit again."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from auditor.audits.counterexamples.snippet import LONGEST, list_imports, python_of
from auditor.datasets import Pair
from auditor.targets.callables import OneDraw

#: Entries of datasets of which a text is made at all: constant ones are short, others would take long for nothing.
_MOST = 10_000
#: Types of values whose repr makes them again.
_PLAIN = (bool, int, float, str, bytes, type(None))


@dataclass
class ReplayCall:
    """A call, with its imports and with notes on what it lacks.

    Attributes
    ----------
    imports : list of str
        Statements.
    notes : list of str
        What a name stands for that the reader has to give a value.
    """

    imports: list[str] = field(default_factory=lambda: ["import auditor"])
    notes: list[str] = field(default_factory=list)

    def name_object(self, subject: Any, role: str) -> str:
        """Name a function or an object that was audited.

        Parameters
        ----------
        subject : object
            A function, a mechanism, or a guarantee.
        role : str
            What it is called where no import reaches it.
        """
        if isinstance(subject, OneDraw):
            return f"auditor.one_draw({self.name_object(subject.function, role)})"
        if inspect.ismethod(subject):
            return f"{self.name_object(subject.__self__, role)}.{subject.__name__}"
        kind = subject if hasattr(subject, "__qualname__") else type(subject)
        module, name = str(getattr(kind, "__module__", "")), str(kind.__qualname__)
        if kind is not subject and not (is_dataclass(subject) and repr(subject).startswith(f"{name}(")):
            return self._describe_only(subject, role)
        if kind is not subject and not all(type(getattr(subject, f.name)) in _PLAIN for f in fields(subject) if f.repr):
            return self._describe_only(subject, role)
        if "<" in name or getattr(sys.modules.get(module), name.partition(".")[0], None) is None:
            return self._describe_only(subject, role)
        if module not in ("__main__", "builtins"):
            self.imports.append(f"from {module} import {name.partition('.')[0]}")
        return name if kind is subject else repr(subject)

    def _describe_only(self, subject: Any, role: str) -> str:
        """A name for what no import reaches: its own where it has one, else its role."""
        name = str(getattr(subject, "__name__", ""))
        if name.isidentifier():
            return name
        self.notes.append(f"{role} is the one that was audited")
        return role

    def show_pairs(self, pairs: Sequence[Pair]) -> str:
        """Write pairs as Python, or a name where they are large."""
        why = "the audited pairs, too large for a line"
        if sum(_count_entries(data) for pair in pairs for data in (pair.x, pair.y)) > _MOST:
            return self._fit_text("\n", "pairs", why)
        texts = []
        for pair in pairs:
            named = "" if pair.name == Pair.name else f", {pair.name!r}"
            texts.append(f"auditor.Pair({python_of(pair.x)}, {python_of(pair.y)}{named})")
        whole = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        return self._fit_text(whole, "pairs", why)

    def show_data(self, data: Any, name: str) -> str:
        """Write a dataset as Python, or name it.

        Parameters
        ----------
        data : dataset
        name : str
            What it is called where it is too large for a line.
        """
        text = "\n" if _count_entries(data) > _MOST else python_of(data)
        return self._fit_text(text, name, "the audited dataset, too large for a line")

    def _fit_text(self, text: str, name: str, why: str) -> str:
        """A text that fits a line, with the imports that it needs; else the name, with a note."""
        if len(text) > LONGEST or "\n" in text:
            self.notes.append(f"{name}: {why}")
            return name
        for line in list_imports(text):
            if line not in self.imports:
                self.imports.insert(0, line)
        return text

    def write_audit(
        self, function: str, mechanism: Any, guarantee: Any, pairs: Sequence[Pair], options: Mapping[str, Any]
    ) -> str:
        """Write the call of a function that audits a claim on pairs.

        Parameters
        ----------
        function : str
            Its name in `auditor`.
        mechanism, guarantee, pairs
            What it was given; a guarantee of the caller's own is named.
        options : mapping of str to object
            See `write_line`.
        """
        named = self.name_object(mechanism, "mechanism")
        ours = type(guarantee).__module__.startswith("auditor.")
        stated = f"auditor.{guarantee!r}" if ours else self.name_object(guarantee, "guarantee")
        return self.write_line(function, [named, stated, self.show_pairs(pairs)], options)

    def write_line(self, function: str, arguments: Sequence[str], options: Mapping[str, Any]) -> str:
        """Write the line.

        Parameters
        ----------
        function : str
            The public function of `auditor` that is called.
        arguments : sequence of str
            Positional ones, as Python.
        options : mapping of str to object
            Keywords, whose values have a repr that makes them again.
        """
        given = ", ".join([*arguments, *(f"{name}={value!r}" for name, value in options.items())])
        line = "; ".join([*self.imports, f"auditor.{function}({given})"])
        return f"{line}  # {'; '.join(self.notes)}" if self.notes else line


def _count_entries(data: Any) -> int:
    """Entries of an array or a frame, rows of another dataset."""
    size = getattr(data, "size", None)
    return size if isinstance(size, int) else len(data) if hasattr(data, "__len__") else 1
