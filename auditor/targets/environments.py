"""Virtual environments for audited libraries: built once, cached, and talked to by the line protocol.

Privacy libraries conflict with one another and with what dpaudit itself needs, so each is installed into an environment
of its own, in which nothing of dpaudit is installed: the helper of the protocol is one file that runs by its path.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any
from urllib.parse import unquote

from auditor.errors import SpecificationError
from auditor.targets.cache import find_cache
from auditor.targets.process import ProcessTarget
from auditor.targets.redacted import without_secrets
from auditor.targets.signatures import write_argument

#: Seconds that a build may take; arbitrary, and long enough to compile a large library from its sources.
BUILD = 1800.0
#: Seconds that an interpreter may take to answer a question about itself; arbitrary.
_ASK = 60.0
#: What is quoted of a failed build: pip says what went wrong in its last lines.
_LINES, _CHARACTERS = 12, 1500
#: The file that marks an environment as whole.
_MARKER = "dpaudit-environment.json"
#: What is no business of an audited library: the secret that services are sent, see `auditor.targets.target_names`.
_SECRET = "DPAUDIT_AUTHORIZATION"
#: What would lead pip to install elsewhere than into the environment, or something else than what was asked for.
_ELSEWHERE = (
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_EDITABLE",
    "PIP_REQUIREMENT",
    "PIP_CONSTRAINT",
    "PIP_DRY_RUN",
)
#: Names inside a local package that building or importing it writes, so that they are no part of its source; the
#: second, those of folders, only at its top, where no module of the package lies.
_WRITTEN, _FOLDERS = ("__pycache__", "*.pyc", "*.egg-info"), ("build", "dist")

_VERSION = "import sys; print(sys.version, sys.base_prefix)"
_INSTALLED = """
import json
from importlib import metadata
print(json.dumps(sorted({(d.metadata["Name"], d.version) for d in metadata.distributions() if d.metadata["Name"]})))
"""


def check_requirements(requirements: Sequence[str]) -> tuple[str, ...]:
    """Check requirements of pip and sort them, each once.

    Parameters
    ----------
    requirements : sequence of str
        Such as "diffprivlib==0.6.6", "numpy<2", "./my_package" or "name @ https://...".

    Raises
    ------
    SpecificationError
        If one is empty, an option of pip, or holds control characters.
    """
    if isinstance(requirements, str):
        raise SpecificationError(
            f"expected a sequence of requirements, got one string {without_secrets(requirements)!r}"
        )
    for text in requirements:
        if not isinstance(text, str) or not text.strip() or not text.isprintable():
            raise SpecificationError(f"requirement {text!r}: expected text such as 'diffprivlib==0.6.6'")
        if not re.match(r"\s*[\w./-]", text):
            raise SpecificationError(
                f"requirement {without_secrets(text)!r}: expected a package's name or path first; a requirement with "
                "spaces in it is quoted"
            )
        if re.search(r"(^|\s)-", text):
            raise SpecificationError(
                f"requirement {without_secrets(text)!r}: expected a package, not an option; options such as an index "
                "belong into pip's configuration"
            )
    return tuple(sorted({text.strip() for text in requirements}))


def cache_folder() -> Path:
    """Folder of cached environments: in $DPAUDIT_CACHE, else $XDG_CACHE_HOME/dpaudit, else ~/.cache/dpaudit."""
    return find_cache("environments")


def find_environment(
    requirements: Sequence[str], *, cache: Path | None = None, python: str | None = None, limit: float = BUILD
) -> Path:
    """Return a virtual environment's folder; build it if missing.

    It holds the requirements.

    The environment is kept under a name that is a hash of the sorted requirements and of the interpreter's version.
    Local packages are hashed with their contents, so that a changed one is installed again. What pip chose for a
    requirement such as "numpy<2" stays: delete the folder to choose anew. pip's own configuration holds, such as an
    index. Two builders at once build once: the second waits. A build that fails leaves nothing, and one that was killed
    is done again.

    Parameters
    ----------
    requirements : sequence of str
        See `check_requirements`; none at all gives an interpreter with its standard library.
    cache : Path, optional
        Folder that holds the environments [default: `cache_folder`].
    python : str, optional
        Interpreter that the environment is for [default: this one].
    limit : float
        Seconds that the build may take.

    Raises
    ------
    SpecificationError
        If a requirement is not what it must be, or the environment cannot be built; pip's last lines are quoted.
    """
    asked = check_requirements(requirements)
    interpreter = python or sys.executable
    version = _run([interpreter, "-I", "-S", "-c", _VERSION], f"the interpreter {interpreter!r} does not run", _ASK)
    contents = [_contents(text) for text in asked]
    digest = hashlib.sha256(json.dumps([asked, contents, version]).encode()).hexdigest()[:16]
    words = re.sub(r"[^A-Za-z0-9.]+", "-", Path(without_secrets(asked[0])).name if asked else "empty").strip("-.")[:40]
    folder = (cache or cache_folder()).absolute() / f"{words}-{digest}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock_environment(folder.with_name(folder.name + ".lock"), folder.name):
            if not _is_complete(folder):
                _build(folder, asked, interpreter, limit)
    except OSError as error:
        raise SpecificationError(
            f"no environment can be kept in {str(folder.parent)!r}: {error}; $DPAUDIT_CACHE names another folder"
        ) from error
    return folder


def list_installed(folder: Path) -> dict[str, str]:
    """Versions of everything that is installed in an environment, by name."""
    answer = _run(
        [_interpreter_path(folder), "-I", "-c", _INSTALLED], f"the environment {str(folder)!r} does not run", _ASK
    )
    return dict(json.loads(answer))


def pip_target(
    requirements: Sequence[str],
    where: str,
    *,
    limit: float = 60.0,
    cache: Path | None = None,
    one_draw: bool = False,
    given: Mapping[str, Any] | None = None,
) -> ProcessTarget:
    """Audit a library's function in a separate environment.

    Parameters
    ----------
    requirements : sequence of str
        What the environment must hold, see `find_environment`.
    where : str
        ``module:name`` or ``path/to/file.py:name``, as the helper of the protocol reads it. It is imported in the
        environment, so it may import what is installed there, the standard library, and what lies in the folder one
        stands in; nothing of the auditor's own interpreter, neither its packages nor its PYTHON* variables. A path is
        taken from the folder one stands in.
    limit : float
        Seconds that one request may take.
    cache : Path, optional
        See `find_environment`.
    one_draw : bool
        It draws once, though it may have a parameter ``n``. The helper sees it by itself where it has none.
    given : mapping, optional
        Values of its further parameters, by name.

    Raises
    ------
    SpecificationError
        If ``where`` is of another form or names a file that does not exist, or there is no such environment.
    """
    module, colon, name = where.rpartition(":")
    if not colon or not module or not name:
        raise SpecificationError(f"function {where!r}: expected module:name or path/to/file.py:name")
    if module.endswith(".py") and not Path(module).is_file():
        raise SpecificationError(f"no such file: {module!r}")
    folder = find_environment(requirements, cache=cache)
    # Without -I the helper's own folder would come first on its path, where http.py hides the standard library's.
    command = [_interpreter_path(folder), "-I", str(Path(__file__).with_name("helper.py")), where]
    command += ["--one-draw"] if one_draw else []
    command += [write_argument(name, value) for name, value in (given or {}).items()]
    return ProcessTarget(command, limit=limit, env=make_variables(folder))


def environment_of(target: object) -> Path | None:
    """Environment of a target from `pip_target`, else None."""
    if not isinstance(target, ProcessTarget):
        return None
    folder = Path(target.command[0]).parent.parent
    return folder if (folder / _MARKER).is_file() else None


def make_variables(folder: Path) -> dict[str, str]:
    """Variables of this process with an environment activated.

    Those of any other Python are left out.
    """
    kept = _without_python(os.environ)
    return {**kept, "VIRTUAL_ENV": str(folder), "PATH": os.pathsep.join([str(folder / "bin"), kept.get("PATH", "")])}


def _without_python(variables: Mapping[str, str]) -> dict[str, str]:
    left_out = {*_ELSEWHERE, _SECRET}
    return {k: v for k, v in variables.items() if not k.startswith("PYTHON") and k not in left_out}


def _interpreter_path(folder: Path) -> str:
    return str(folder / "bin" / "python")


def _is_complete(folder: Path) -> bool:
    """Whether the environment was built to its end; its interpreter is a link, which dangles after an upgrade."""
    return (folder / _MARKER).is_file() and Path(_interpreter_path(folder)).exists()


def _build(folder: Path, asked: tuple[str, ...], interpreter: str, limit: float) -> None:
    """Build in place, because scripts in an environment hold its path; the marker is written last."""
    rmtree(folder, ignore_errors=True)
    what = without_secrets(", ".join(asked)) or "no packages"
    print(f"building an environment with {what} ...; kept in {folder}", file=sys.stderr, flush=True)
    begun = time.monotonic()
    try:
        failure = f"no environment with {what} could be built"
        pip = [] if asked else ["--without-pip"]
        # What pip unpacks goes with the folder, also if the build is interrupted or killed.
        temporary = folder / "temporary"
        temporary.mkdir(parents=True)
        _run([interpreter, "-I", "-m", "venv", *pip, str(folder)], failure, limit, temporary)
        if asked:
            install = [
                _interpreter_path(folder),
                "-I",
                "-m",
                "pip",
                "install",
                "--no-input",
                "--disable-pip-version-check",
                "--no-compile",  # what is imported is compiled then, and kept: a third less time
            ]
            _run([*install, "--", *asked], failure, max(limit - (time.monotonic() - begun), 1.0), temporary)
        rmtree(temporary, ignore_errors=True)
        about = {
            "requirements": [without_secrets(text) for text in asked],
            "seconds": round(time.monotonic() - begun, 1),
        }
        (folder / _MARKER).write_text(json.dumps(about), encoding="utf-8")
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise


def _run(command: Sequence[str], failure: str, limit: float, temporary: Path | None = None) -> str:
    """What a command prints; a failure shows its last lines."""
    elsewhere = {} if temporary is None else {"TMPDIR": str(temporary)}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=_without_python(os.environ) | elsewhere,
            start_new_session=True,  # so that what a build has started ends with it
        )
    except OSError as error:
        raise SpecificationError(f"{failure}: {error}") from error
    with process:
        try:
            out, err = process.communicate(timeout=limit)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise SpecificationError(f"{failure} within {limit:g} s") from None
            raise
    if process.returncode:
        lines = (err.strip() or out.strip()).splitlines()[-_LINES:]
        said = without_secrets("\n".join(lines))[-_CHARACTERS:]
        raise SpecificationError(f"{failure} (exit code {process.returncode}):\n{said}")
    return out.strip()


def _contents(requirement: str) -> str:
    """Hash of what a local package holds, and empty for any other requirement."""
    name, url, place = requirement.partition(";")[0].strip().rpartition("file://")
    if url:  # its path begins after the host, and characters such as spaces are written by their codes
        path = Path(unquote(place.partition("#")[0].removeprefix("localhost")))
    else:
        name = re.sub(r"\[[\w\s,.-]*\]$", "", place)  # extras, as in ./package[extra]
        path = Path(name.strip())
    # pip takes a plain name for a package of its index, even beside a folder of this name.
    local = path.is_file() or (path.is_dir() and (bool(url) or os.sep in name or name.startswith(".")))
    if not local:
        return ""
    digest = hashlib.sha256(str(path.absolute()).encode())
    for file in [path] if path.is_file() else _files(path, _FOLDERS):
        digest.update(f"{file.relative_to(path)}\0".encode(errors="surrogateescape"))
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _files(folder: Path, left_out: tuple[str, ...] = (), within: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Files of a local package, in order, without hidden ones and what building it writes.

    Links to folders are followed, as what builds a package does, but not into a folder that one is within.
    """
    within = (*within, folder.resolve())
    for child in sorted(folder.iterdir()):
        if child.name.startswith(".") or any(child.match(pattern) for pattern in (*_WRITTEN, *left_out)):
            continue
        if child.is_dir():
            if child.resolve() not in within:
                yield from _files(child, within=within)
        elif child.is_file():
            yield child


@contextmanager
def _lock_environment(path: Path, name: str) -> Iterator[None]:
    """Hold the lock of an environment; it is the file's, so it ends with the process that holds it."""
    import fcntl  # POSIX only, as the folders of an environment here are

    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another process that builds {name} ...", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
