"""What the commands for one Python function, or one training run, share: target, name of the result, and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.cli.commands import print_notices, tell_missing_page
from auditor.errors import SpecificationError

if TYPE_CHECKING:
    from auditor.privacy.guarantees import Guarantee
    from auditor.results import AuditResult
    from auditor.targets import Mechanism


def load_function(text: str, one_draw: bool, arguments: Sequence[str], done: str) -> Mechanism:
    """Load a Python function of this process.

    Parameters
    ----------
    text : str
        Name of the target.
    one_draw : bool
        It draws once.
    arguments : sequence of str
        Values of its further parameters, each as NAME=JSON.
    done : str
        What is done with it, as in "walked".

    Raises
    ------
    SpecificationError
        If it cannot be loaded, or is a process, a service or in another environment.
    """
    from auditor.targets.signatures import parse_arguments
    from auditor.targets.target_names import is_remote, target_named

    mechanism = target_named(text, one_draw=one_draw, given=parse_arguments(arguments))
    if is_remote(mechanism):
        raise SpecificationError(f"target {text!r}: only a Python function of this process can be {done}")
    return mechanism


def name_result(command: str, level: str, guarantee: Guarantee, target: str) -> str:
    """Id of the result of a command.

    Parameters
    ----------
    command : str
        The command.
    level : str
        "L0" to "L4".
    guarantee : Guarantee
        The claim.
    target : str
        Name of the target, without secrets.
    """
    return f"{command}/{level}/{guarantee.notion.replace(' ', '_').lower()}/{target}"


def save_result(folder: Path, result: AuditResult, about: Mapping[str, Any]) -> None:
    """Write results.json and the reports of one result.

    The names of the files are printed.

    Parameters
    ----------
    folder : Path
        Exists.
    result : AuditResult
        The result.
    about : mapping
        Members of the manifest, beside the version of dpaudit.
    """
    from auditor.report import write_reports
    from auditor.results import make_document, write_json

    content = make_document({"dpaudit": metadata.version("dpaudit"), **about}, [result], [])
    write_json(folder / "results.json", content)
    written = write_reports(content, folder)
    tell_missing_page(written)
    print_notices(map(str, written))
