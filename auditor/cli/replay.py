"""Replay of a counterexample by the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auditor.audits.counterexamples.replay import Replayed, replay_event
from auditor.audits.counterexamples.snippet import show_pair
from auditor.claims import registry
from auditor.datasets import Pair
from auditor.datasets.files import read_pair
from auditor.errors import SpecificationError, TargetError
from auditor.results import choose_id
from auditor.runs.diff import read_results
from auditor.targets import Mechanism
from auditor.targets.sampler import check_limit, check_seed
from auditor.targets.signatures import parse_arguments
from auditor.targets.target_names import closing_target, is_remote, target_named


def draw_again(
    results: Path,
    id_: str | None,
    target: str | None,
    data: Path | None,
    neighbor: Path | None,
    seed: int | None,
    limit: float,
    *,
    one_draw: bool = False,
    arguments: Sequence[str] = (),
) -> Replayed:
    """Draw a counterexample of a results.json again, see `replay_event`.

    Parameters
    ----------
    results : Path
    id_ : str or None
        The claim; None if only one has a counterexample.
    target : str or None
        Name of what to draw from; None for what was audited.
    data, neighbor : Path or None
        The datasets, where the record does not hold them.
    seed : int or None
        Draw afresh, with this seed.
    limit : float
        Seconds that one call of the target may take.
    one_draw : bool
        The function that ``target`` names draws once.
    arguments : sequence of str
        Values of its further parameters, each as NAME=JSON.

    Raises
    ------
    SpecificationError
        If there is no such counterexample, or the target or the datasets cannot be read.
    TargetError
        If the target does not answer.
    """
    if (data is None) != (neighbor is None):
        raise SpecificationError("--data and --neighbor need each other: give both or none")
    if target is None and (one_draw or arguments):
        given_option = "--one-draw" if one_draw else f"--arg {arguments[0]}"
        raise SpecificationError(f"{given_option} needs --target: what was attacked is called as it was then")
    if seed is not None:
        check_seed(seed)
    check_limit(limit)
    content = read_results(results)
    record = _choose_refuted(content["claims"], id_, results)
    given = Pair(*read_pair(data, neighbor), "given pair") if data and neighbor else None
    about = content["manifest"]
    if target is not None:
        about = {**about, "target": target, "one_draw": one_draw, "arguments": arguments}
    with _drawn_from(about, record, limit) as (mechanism, declared):
        own = None if is_remote(mechanism) else limit
        try:
            return replay_event(record, mechanism, given or declared, seed=seed, limit=own)
        except TargetError as error:
            raise error if given is None else TargetError(error.public) from None
        except SpecificationError as error:
            raise SpecificationError(f"{str(results)!r}: {error}") from error


def _choose_refuted(claims: list[Mapping[str, Any]], id_: str | None, results: Path) -> Mapping[str, Any]:
    refuted = {str(claim["id"]): claim for claim in claims if claim.get("counterexample")}
    try:
        return refuted[choose_id(list(refuted), id_, "counterexamples")]
    except SpecificationError as error:
        raise SpecificationError(f"{str(results)!r}: {error}") from None


@contextmanager
def _drawn_from(
    about: Mapping[str, Any], record: Mapping[str, Any], limit: float
) -> Iterator[tuple[Mechanism, Pair | None]]:
    """What to draw from, and its declared pair of that name."""
    name = about.get("target")
    if name is not None:
        single = about.get("one_draw") is True
        given = parse_arguments(about.get("arguments", ()))
        with closing_target(target_named(str(name), limit=limit, one_draw=single, given=given)) as mechanism:
            yield mechanism, None
        return
    paths = about.get("paths")
    if not isinstance(paths, list):
        raise SpecificationError(f"claim {record['id']!r} is of no target, and of the paths {paths!r}")
    found = [claim for claim in registry.load_claims(tuple(map(str, paths))) if claim.id == record["id"]]
    if not found:
        raise SpecificationError(f"claim {record['id']!r} is not declared in {paths}")
    draft = found[0].draft
    if draft.mechanism is None:
        raise SpecificationError(f"claim {record['id']!r} has no mechanism to draw from")
    yield draft.mechanism, _find_pair(draft.pairs, record)


def _find_pair(pairs: Sequence[Pair], record: Mapping[str, Any]) -> Pair | None:
    """The declared pair of a counterexample that does not hold its data; of pairs of one name, by what was shown."""
    found = record["counterexample"]
    named = [pair for pair in pairs if pair.name == found.get("pair")]
    if len(named) > 1 and not (found.get("again") or {}).get("data"):
        named = [pair for pair in named if list(show_pair(pair.x, pair.y)) == [found.get("x"), found.get("y")]]
        if len(named) != 1:
            raise SpecificationError(
                f"claim {record['id']!r} has several pairs called {found['pair']!r}, and its record does not tell "
                "which one it was: name them apart, and run it again"
            )
    return named[0] if named else None
