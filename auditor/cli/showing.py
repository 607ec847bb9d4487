"""A declared claim for people: what it states, and what its audit would take."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from auditor.audits.adversaries.game import Game
from auditor.audits.counterexamples.snippet import show_data, show_pair
from auditor.audits.summary import describe_target
from auditor.claims import BUDGETS, Claim
from auditor.cli.listing import DEFAULT
from auditor.errors import SpecificationError
from auditor.events.event_learner import RESERVOIR
from auditor.evidence.power import NARROW, RESOLVED, draws_that_count, find_resolution
from auditor.privacy.guarantees import Guarantee
from auditor.runs.declarations import ChangedError, Declarations
from auditor.runs.run import Run, settings_of, share_alpha
from auditor.runs.selection import suggest_ids
from auditor.targets.process_settings import keep_apart

#: Pairs that `show` lists, of claims with many.
_PAIRS = 6
#: What the entries of a folder owe.
INVENTORY = "inventory.toml"


def show_lines(wanted: str, declared: Declarations, paths: Sequence[str], alpha: float = 0.01) -> Iterator[str]:
    """Describe the claims with an id, and their cost.

    It is one claim, an entry, or all whose ids begin so.

    Of an entry that an inventory lists (`INVENTORY` in one of the folders), what it owes stands first.

    Parameters
    ----------
    wanted : str
        A whole id, or its beginning up to a slash.
    declared : Declarations
        What the paths declare.
    paths : sequence of str
        Where claims are declared, by default `DEFAULT`.
    alpha : float
        Level of a run of all claims, of which each has a share; the default is that of `dpaudit run`.

    Raises
    ------
    SpecificationError
        If no id fits; the message has ids that are close.
    """
    try:
        chosen = declared.load(_ids_of(wanted, declared))
    except ChangedError:
        chosen = declared.load(_ids_of(wanted, declared))
    yield from owed_lines(wanted.rstrip("/"), paths, chosen)
    available = declared.index.claims
    share = share_alpha(alpha, available)
    share_of = f"in a run of all {len(available)} claims at --alpha {alpha:g}"
    for claim in chosen:
        with keep_apart(claim.module):
            lines = list(_claim_lines(claim, share, share_of))
        yield from lines
        yield f"  run it      dpaudit run {shlex.join([*paths, '-k', claim.id])}"


def _ids_of(wanted: str, declared: Declarations) -> set[str]:
    """Ids that are the wanted one, or begin so up to a slash."""
    available = declared.index.claims
    found = {claim.id for claim in available if f"{claim.id}/".startswith(f"{wanted.rstrip('/')}/")}
    if not found:
        close = suggest_ids(wanted, available)
        raise SpecificationError(f"no claim or entry has the id {wanted!r} (see `dpaudit list`){close}")
    return found


def owed_lines(entry: str, paths: Sequence[str], claims: Sequence[Claim]) -> Iterator[str]:
    """List what an entry owes, claims, and leaves out.

    Obligations are those of the inventory; what is left out has its reason.

    Parameters
    ----------
    entry : str
        Id of an entry; nothing is listed of another id.
    paths : sequence of str
        Where claims are declared, by default `DEFAULT`; inventories are in these folders.
    claims : sequence of Claim
        The entry's claims.
    """
    files = [Path(path) / INVENTORY for path in paths or (DEFAULT,)]
    listed = [item for file in files if file.is_file() for item in tomllib.loads(file.read_text("utf-8"))["entry"]]
    for item in (item for item in listed if item["id"] == entry):
        yield f"{entry} owes"
        yield f"  levels      {', '.join(item['levels'])}"
        yield from (f"  pair        {text}" for text in item["pairs"])
        for mutant in item["mutants"]:
            met = [claim.id for claim in claims if claim.draft.case.partition("__")[0] == mutant["name"]]
            refused = "refused by the constructor" if mutant["kind"] == "rejected" else "no claim: see the tests"
            yield f"  mutant      {mutant['name']} ({mutant['kind']}): {', '.join(met) or refused}"
        for bank in item["mutants_from"]:
            yield f"  mutants     those of {bank}"
        for left in item.get("inherited_elsewhere", ()):
            same = f", claimed as {left['claimed_as']}" if "claimed_as" in left else ""
            yield f"  left out    {', '.join(left['mutants'])} of {left['bank']}{same}: {left['reason']}"
        named = item.get("claimed_by", [[]] * len(item["accuracy"]))
        for text, ids in zip(item["accuracy"], named, strict=True):
            yield f"  accuracy    {text}" + (f": {', '.join(f'{entry}/{id_}' for id_ in ids)}" if ids else "")
        for owed in item["exponents"]:
            yield f"  exponent    {owed['quantity']} as ({owed['parameter']})^({owed['exponent']})"
        yield from (f"  erratum     {erratum['id']} ({erratum['class']})" for erratum in item["errata"])


def _claim_lines(claim: Claim, share: float, share_of: str) -> Iterator[str]:
    draft, guarantee = claim.draft, claim.draft.guarantee
    yield claim.id
    yield f"  {claim.title}" + (f": {draft.note}" if draft.note else "")
    yield f"  source      {claim.source.document}, {claim.source.place}"
    yield f"  claimed     {guarantee} ({guarantee.notion}), expected {draft.expected}"
    if draft.shows is not None:
        yield f"  shows       erratum {draft.shows.erratum}, {draft.shows.role}"
    if draft.mechanism is not None:
        yield f"  mechanism   {describe_target(draft.mechanism)}"
    if isinstance(draft.subject, Game):
        yield f"  adversary   {draft.subject.adversary}"
    for pair in draft.pairs[:_PAIRS]:
        yield f"  pair        {pair.name}: {' against '.join(show_pair(pair.x, pair.y))}"
    if len(draft.pairs) > _PAIRS:
        yield f"  pair        and {len(draft.pairs) - _PAIRS} more"
    for name, data in draft.datasets[: 0 if draft.pairs else _PAIRS]:
        yield f"  dataset     {name}: {show_data(data)}"
    if isinstance(guarantee, Guarantee):
        known = [draft.privacy_guarantee.exact_level(curve) for curve in draft.curves]
        known += [draft.exact_level] if draft.exact_level is not None else []
        yield f"  exact       {max(known):.6g}" if known else "  exact       not known"
    if not draft.draws_any:
        law = isinstance(guarantee, Guarantee)
        compared = "the stated distribution is compared with the claim" if law else "both sides are computed"
        yield f"  budget      no draws: {compared}"
        return
    yield f"  alpha       {share:.3g}, its share {share_of}"
    budgets = {level: settings_of(claim, Run(level=level), share) for level in BUDGETS}
    yield "  budget      " + ", ".join(f"{level} {found.draws:,} draws" for level, found in budgets.items())
    if isinstance(guarantee, Guarantee):
        wanted = budgets["smoke"].wanted(guarantee.level)
        text = f"  resolution  {guarantee.symbol} = {wanted:.4g} is wanted, for events of probability {RESOLVED:g}"
        if not isinstance(draft.subject, Game) and draft.expected == "consistent":
            # As if each pair had the same part of the draws.
            n = draws_that_count(budgets["smoke"].draws / 2 / len(draft.pairs), NARROW, RESERVOIR)
            level = find_resolution(RESOLVED, n, draft.privacy_guarantee, share)
            text += f"; {level:.4g} at smoke, for outputs of up to {NARROW} numbers"
        yield text
