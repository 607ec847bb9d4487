"""What the loading of claims depends on: sources, data, folders, variables and versions, by their hashes."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from auditor.errors import SpecificationError
from auditor.targets.python_files import find_files

#: When this process began to import what is hashed here, but for the few modules before this one.
_BEGUN = time.time()
#: Seconds before that in which nothing may have changed: file systems round times by up to 2 s (FAT), and a process
#: takes some tenths of a second to come this far.
MARGIN = 2.0
#: This engine's folder.
_ENGINE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: What the kernel shows of machine and process: libraries read there how many cores there are.
_KERNEL = ("/proc/", "/sys/", "/dev/")
#: Events of the interpreter that are answers from outside of files.
_OUTSIDE = (
    "os.chdir",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "pty.spawn",
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "subprocess.Popen",
)
_LISTED = ("os.listdir", "os.scandir")
_BY_NAME = ("sqlite3.connect", "ctypes.dlopen")
#: Files that look for modules and for distributions.
_IMPORTS = ("<frozen importlib", os.path.join(sysconfig.get_path("stdlib"), "importlib", ""))
_SET = ("os.putenv", "os.unsetenv")
#: All events that are heard. Others are none of ours, and some would be caused by hearing them (`sys._getframe`).
_HEARD = frozenset(["open", "import", *_OUTSIDE, *_LISTED, *_BY_NAME, *_SET])


@dataclass(frozen=True)
class Surroundings:
    """A process before it loads claims.

    Parameters
    ----------
    folder : str
        Working directory.
    search : tuple of str
        Where Python looks for modules.
    versions : str
        Hash of the versions of Python, of this engine and of all installed distributions.
    strangers : tuple of str
        Modules that are loaded and belong neither to this engine nor to an installed package: what they read when they
        were loaded was not seen, and what they changed is not known.
    begun : float
        Time before which the sources of the process were as they were loaded.
    """

    folder: str
    search: tuple[str, ...]
    versions: str
    strangers: tuple[str, ...]
    begun: float


@dataclass(frozen=True)
class Dependencies:
    """What was read when claims were loaded, with hashes.

    Parameters
    ----------
    declaring : tuple of str
        Files that the paths stand for.
    files : mapping of str to str
        Hashes of sources and data; empty for what is not there.
    folders : mapping of str to str
        Hashes of the names in folders that were listed, or hold one of the sources.
    names : tuple of str
        Modules that were imported or looked for, by the first part of their names.
    found : mapping of str to str
        Hashes of what has one of these names, by the folder of the project in which Python looks.
    variables : mapping of str to str
        Hashes of the variables of the environment that were read; empty for what is not set.
    """

    declaring: tuple[str, ...]
    files: Mapping[str, str]
    folders: Mapping[str, str]
    names: tuple[str, ...]
    found: Mapping[str, str]
    variables: Mapping[str, str]

    def hold(self, paths: Sequence[str], search: Iterable[str]) -> bool:
        """Whether all is as it was.

        Parameters
        ----------
        paths : sequence of str
            Files and folders that declare claims.
        search : iterable of str
            Where Python looks for modules.
        """
        try:
            return (
                tuple(find_files(paths)) == self.declaring
                and all(hash_file(name) == known for name, known in self.files.items())
                and all(hash_names(name) == known for name, known in self.folders.items())
                and all(_hash_variable(name) == known for name, known in self.variables.items())
                and find_modules(search, self.names) == self.found
            )
        except SpecificationError:
            return False


def look_around() -> Surroundings:
    """What this process is before it loads claims."""
    strangers = sorted(
        name
        for name, module in list(sys.modules.items())
        if (file := _file_of(module)) is not None
        and not is_versioned(file)
        and not _is_within(file, _ENGINE)
        and not (name == "__main__" and _is_within(file, sysconfig.get_path("scripts")))
    )
    return Surroundings(os.getcwd(), tuple(sys.path), hash_versions(sys.path), tuple(strangers), _BEGUN)


def hash_versions(search: Iterable[str]) -> str:
    """Hash of the versions of Python, this engine and all distributions.

    Distributions count by the names of the folders that describe them, which hold the version, and by the time of
    their installation. An engine that is no installed package counts by the contents of its files.
    """
    parts = [sys.implementation.name, sys.version, sys.platform, sys.prefix, str(sys.flags), _ENGINE]
    for folder in search:
        if is_versioned(folder):
            try:
                with os.scandir(folder) as entries:
                    parts += sorted(
                        f"{folder}/{entry.name} {entry.stat().st_mtime_ns}"
                        for entry in entries
                        if entry.name.endswith((".dist-info", ".egg-info", ".egg-link", ".pth"))
                    )
            except OSError:
                continue
    if not is_versioned(_ENGINE):
        parts += [f"{file} {hash_file(file)}" for file in _engine_files()]
    return _hash(os.fsencode("\0".join(parts)))


def is_versioned(place: str) -> bool:
    """Whether a place is of Python or an installed package.

    Versions tell what is there apart.
    """
    absolute = os.path.abspath(place)
    return any(_is_within(absolute, known) for known in _installed_folders()) or any(
        part in absolute.split(os.sep) for part in ("site-packages", "dist-packages")
    )


@cache
def _installed_folders() -> tuple[str, ...]:
    names = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    places = {place for name in names if name for place in (os.path.abspath(name), os.path.realpath(name))}
    # The standard library as a zip file, which Python looks for and mostly is not there.
    return tuple(sorted(places | {os.path.join(os.path.dirname(place), _ZIP) for place in places}))


_ZIP = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"


def _is_within(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder + os.sep)


def _file_of(module: Any) -> str | None:
    file = getattr(module, "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else None


def _engine_files() -> list[str]:
    found = [
        os.path.join(folder, name)
        for folder, inner, names in os.walk(_ENGINE)
        for name in names
        if not folder.endswith("__pycache__") and not name.endswith(".pyc")
    ]
    return sorted(found)


# ------------------------------------------------------------------------------------------ hashes


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hash_file(name: str) -> str:
    """Hash of a file's content.

    It is empty if the file cannot be read.
    """
    try:
        with open(name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def hash_names(folder: str) -> str:
    """Hash of the names in a folder.

    What Python or an editor keeps there does not count, nor what Python keeps in a folder for compiled files. It is
    empty if there is no folder.
    """
    if os.path.basename(folder) == "__pycache__":
        return ""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ""
    return _hash(os.fsencode("\0".join(name for name in names if name != "__pycache__" and not name.startswith("."))))


def _hash_variable(name: str) -> str:
    value = os.environ.get(name)
    return "" if value is None else _hash(value.encode("utf-8", "surrogateescape"))


def find_modules(search: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Hashes of what could be imported by some names, by folder.

    Descriptions of distributions count by their names, which hold the version.

    Parameters
    ----------
    search : iterable of str
        Where Python looks for modules; installed packages are left out.
    names : iterable of str
        Names of modules without dots.
    """
    wanted, found = set(names), {}
    for folder in dict.fromkeys(os.path.abspath(place) for place in search):
        if is_versioned(folder):
            continue
        if os.path.isfile(folder):  # a zip file
            found[folder] = hash_file(folder)
            continue
        try:
            there = sorted(
                name
                for name in os.listdir(folder)
                if name.partition(".")[0] in wanted or name.endswith((".dist-info", ".egg-info"))
            )
        except OSError:
            there = []
        found[folder] = _hash(os.fsencode("\0".join(there)))
    return found


# ------------------------------------------------------------------------------------------ loading


@dataclass
class Loading:
    """What happens while claims are loaded.

    Parameters
    ----------
    around : Surroundings
        The process before.
    threads : frozenset of int
        Threads that were there before, and load nothing.
    """

    around: Surroundings
    threads: frozenset[int] = frozenset()
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    listed: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    unseen: list[str] = field(default_factory=list)
    lasting: bool = False
    busy: bool = False

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an audit event of the interpreter.

        Parameters
        ----------
        event : str
            Its name, one of `_HEARD`.
        arguments : tuple
            What it is about.
        """
        if event == "open":
            self._note_opening(arguments[0], arguments[2])
        elif event in _LISTED:
            caller = sys._getframe(
                2
            ).f_code.co_filename  # of `_record_event`, which was called by nobody but the interpreter
            if not caller.startswith(_IMPORTS):  # what these find is in `find_modules`
                place = self._absolute_path("." if arguments[0] is None else arguments[0])
                if place not in self.listed:
                    self.listed[place] = hash_names(place)
        elif event == "import":
            self.names.add(str(arguments[0]).partition(".")[0])
        elif event in _BY_NAME:
            if isinstance(arguments[0], str | bytes) and os.sep in os.fsdecode(arguments[0]):
                self.read.add(self._absolute_path(arguments[0]))
        elif event in _OUTSIDE:
            self.unseen.append(event)
        elif event in _SET:
            self.lasting = True

    def _note_opening(self, path: Any, flags: Any) -> None:
        if path is None or isinstance(path, int):  # an open file, or a pipe
            return
        place = self._absolute_path(path)
        flags = flags if isinstance(flags, int) else 0
        writes = flags & (os.O_WRONLY | os.O_RDWR)
        if writes:
            self.written.add(place)
        if not flags & os.O_WRONLY and not (writes and flags & (os.O_TRUNC | os.O_EXCL)):
            self.read.add(place)

    def _absolute_path(self, path: Any) -> str:
        if isinstance(path, int):
            raise TypeError("a folder that is open already")
        return os.path.abspath(os.fsdecode(path))

    def collect(self, paths: Sequence[str]) -> Dependencies | None:
        """Hash what was read.

        None if something cannot be seen, or has changed in the meantime.

        Parameters
        ----------
        paths : sequence of str
            Files and folders whose claims were loaded.

        Notes
        -----
        Valid because: all files are older than the process, by the time of their last change, which nobody can set
        back. So what was loaded from them at any moment since is what is hashed now, and this holds for modules that
        Python took from a compiled file as well.
        """
        declaring = tuple(find_files(paths))
        sources = {os.path.abspath(file) for file in declaring}
        sources |= {file for module in list(sys.modules.values()) if (file := _file_of(module)) is not None}
        sources = {file for file in sources if not is_versioned(file) and not _is_within(file, _ENGINE)}
        main = _file_of(sys.modules.get("__main__"))
        sources -= {main} if main is not None else set()
        data = {
            place
            for place in self.read
            if not is_versioned(place)
            and not _is_within(place, _ENGINE)
            and not place.startswith(_KERNEL)
            and not place.endswith(".pyc")
        }
        listed = {
            name: known
            for name, known in self.listed.items()
            if not is_versioned(name) and not name.startswith(_KERNEL)
        }
        folders = {os.path.dirname(file): "" for file in sources} | listed
        folders = {name: hash_names(name) for name in sorted(folders)}
        engine = [] if is_versioned(_ENGINE) else _engine_files()
        if (
            self.unseen
            or data & self.written
            or any(folders[name] != known for name, known in listed.items())
            or not all(map(self._is_older, [*sources, *data, *engine]))
        ):
            return None
        names = tuple(sorted(self.names | {name.partition(".")[0] for name in sys.modules}))
        return Dependencies(
            declaring=declaring,
            files={name: hash_file(name) for name in sorted(sources | data)},
            folders=folders,
            names=names,
            found=find_modules(self.around.search, names),
            variables={name: _hash_variable(name) for name in sorted(self.variables)},
        )

    def _is_older(self, file: str) -> bool:
        try:
            found = os.stat(file)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        # On Windows the first of the two is the time of creation.
        return max(found.st_ctime, found.st_mtime) < self.around.begun - MARGIN


#: What is being watched; the interpreter has no way to forget a hook.
_WATCHED: list[Loading] = []


@cache
def _listen() -> None:
    sys.addaudithook(_record_event)


def _record_event(event: str, arguments: tuple[Any, ...]) -> None:
    if not _WATCHED or event not in _HEARD:
        return
    loading = _WATCHED[-1]
    if loading.busy or threading.get_ident() in loading.threads:
        return
    loading.busy = True
    try:
        loading.hear(event, arguments)
    except Exception as error:  # noqa: BLE001 - an exception here would be one of the code that is watched
        loading.unseen.append(f"{event}: {error}")
    finally:
        loading.busy = False


@contextmanager
def watch_loading(around: Surroundings, paths: Sequence[str]) -> Iterator[Loading]:
    """Note what is read while claims are loaded in the block.

    Parameters
    ----------
    around : Surroundings
        This process before.
    paths : sequence of str
        Files and folders that are loaded.
    """
    import numpy as np
    import numpy.random

    loading = Loading(around, frozenset(sys._current_frames()) - {threading.get_ident()})
    _listen()
    kind: Any = type(os.environ)
    read: Callable[[Any, str], str] = kind.__getitem__

    def read_noted(variables: Any, name: Any) -> str:
        loading.variables.add(os.fsdecode(name))
        return read(variables, name)

    def state() -> bytes:
        return pickle.dumps((random.getstate(), np.random.get_state(), np.geterr()))  # noqa: NPY002

    before, search = state(), list(sys.path)
    kind.__getitem__ = read_noted
    _WATCHED.append(loading)
    try:
        yield loading
    finally:
        _WATCHED.remove(loading)
        kind.__getitem__ = read
    loading.lasting |= state() != before or not _is_usual(search, sys.path, paths)


def _is_usual(before: list[str], after: list[str], paths: Sequence[str]) -> bool:
    """Whether Python looks where it did, and in the folder of at most one package of claims."""
    roots = {root for file in find_files(paths) if (root := _root(os.path.realpath(file))) is not None}
    added = [place for place in after if place not in before]
    return [place for place in after if place in before] == before and set(added) <= roots and len(roots) <= 1


def _root(file: str) -> str | None:
    """The folder that a file's package is imported from; None if it stands in none."""
    folder = first = os.path.dirname(file)
    while Path(folder, "__init__.py").is_file():
        folder = os.path.dirname(folder)
    return None if folder == first else folder
