"""Declared claims for people: the list of entries, and what a claim states and would take."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from auditor.audits.adversaries.game import Game
from auditor.audits.counterexamples.snippet import show_data
from auditor.audits.summary import describe_target
from auditor.claims import BUDGETS, Claim, registry
from auditor.errors import SpecificationError
from auditor.events.event_learner import RESERVOIR
from auditor.evidence.power import NARROW, RESOLVED, draws_that_count, find_resolution
from auditor.privacy.guarantees import Guarantee
from auditor.runs.run import Run, settings_of, split_alpha

#: Pairs that `show` lists, of claims with many.
_PAIRS = 6
#: Ids that are suggested for an unknown one.
_SUGGESTED = 3
#: Where claims are looked for if no path is given.
DEFAULT = "experiments"
#: What the entries of a folder owe.
INVENTORY = "inventory.toml"


def load_claims(paths: Sequence[str]) -> list[Claim]:
    """Load claims declared in paths, by default in `DEFAULT`.

    A missing default is no mistake of the user's.

    Raises
    ------
    SpecificationError
        See `registry.load_claims`.
    """
    if not paths and not Path(DEFAULT).exists():
        raise SpecificationError(
            f"there is no folder {DEFAULT!r} in {str(Path.cwd())!r}: name the files or folders that declare claims"
        )
    if "" in paths:
        raise SpecificationError("a path must not be empty, got ''")
    return registry.load_claims(paths or (DEFAULT,))


def select_claims(available: Sequence[Claim], expression: str | None) -> list[Claim]:
    """Select claims, with close ids in the message if nothing matches.

    Parameters
    ----------
    available : sequence of Claim
        Claims to choose from.
    expression : str or None
        As for `registry.select_claims`; None selects all.

    Raises
    ------
    SpecificationError
        If the expression cannot be read, or nothing matches.
    """
    try:
        return registry.select_claims(available, expression)
    except SpecificationError as error:
        close = suggest_ids(expression or "", available) if str(error).startswith("no claim") else ""
        raise SpecificationError(f"{error}{close}") from error


def list_entries(paths: Sequence[str]) -> list[dict[str, Any]]:
    """List entries with the ids of their claims, as JSON."""
    claims = load_claims(paths)
    listed = []
    for entry in registry.load_entries(paths or (DEFAULT,)):
        own = [claim for claim in claims if claim.entry == entry.id]
        listed.append(
            {
                "entry": entry.id,
                "name": entry.title,
                "source": {"document": entry.source.document, "place": entry.source.place},
                "mechanism": ", ".join(
                    sorted({describe_target(c.draft.mechanism) for c in own if not c.draft.is_mutant})
                ),
                "claims": [claim.id for claim in own if not claim.draft.is_mutant],
                "mutants": [claim.id for claim in own if claim.draft.is_mutant],
                "exact": any(claim.draft.curve_of is not None for claim in own),
                "accuracy": any(claim.draft.level == "L4" for claim in own),
            }
        )
    return listed


def list_lines(paths: Sequence[str]) -> Iterator[str]:
    """List entries and claims as text, with a count."""
    claims, listed = load_claims(paths), list_entries(paths)
    for item in listed:
        yield f"{item['entry']}  {item['name']}"
        for claim in claims:
            if claim.entry == item["entry"]:
                yield f"  {claim.id}  {claim.draft.guarantee}  expected {claim.draft.expected}"
    plural = "entry" if len(listed) == 1 else "entries"
    yield f"{len(listed)} {plural}, {len(claims)} claim{'s' * (len(claims) != 1)}"


def suggest_ids(wanted: str, available: Sequence[Claim]) -> str:
    """Suggest ids close to an unknown one.

    They end a message; empty if there is none.

    Parameters
    ----------
    wanted : str
        The unknown id, or a part of one.
    available : sequence of Claim
        Claims whose ids, and whose entries' ids, are suggested.
    """
    ids = list(dict.fromkeys([*(claim.entry for claim in available), *(claim.id for claim in available)]))
    parts = [id_ for id_ in ids if wanted and wanted.lower() in id_.lower()]
    # Parts of ids, because most people know a mechanism's name and not its document.
    names = {part: id_ for id_ in reversed(ids) for part in (id_, id_.rpartition("/")[2])}
    close = [names[match] for match in difflib.get_close_matches(wanted, names, n=_SUGGESTED, cutoff=0.7)]
    found = list(dict.fromkeys([*parts, *close]))[:_SUGGESTED]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def show_lines(wanted: str, paths: Sequence[str], alpha: float = 0.01) -> Iterator[str]:
    """Describe the claims with an id, and their cost.

    It is one claim, an entry, or all whose ids begin so.

    Of an entry that an inventory lists (`INVENTORY` in one of the folders), what it owes stands first.

    Parameters
    ----------
    wanted : str
        A whole id, or its beginning up to a slash.
    paths : sequence of str
        Where claims are declared, by default `DEFAULT`.
    alpha : float
        Level of a run of all claims, of which each has a share; the default is that of `dpaudit run`.

    Raises
    ------
    SpecificationError
        If no id fits; the message has ids that are close.
    """
    available = load_claims(paths)
    chosen = [claim for claim in available if f"{claim.id}/".startswith(f"{wanted.rstrip('/')}/")]
    if not chosen:
        close = suggest_ids(wanted, available)
        raise SpecificationError(f"no claim or entry has the id {wanted!r} (see `dpaudit list`){close}")
    yield from owed_lines(wanted.rstrip("/"), paths, chosen)
    shares = split_alpha(available, alpha)
    share_of = f"in a run of all {len(available)} claims at --alpha {alpha:g}"
    for claim in chosen:
        yield from _claim_lines(claim, shares[claim.id], share_of)
        yield f"  run it      dpaudit run {' '.join([*paths, '-k', claim.id])}"


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
        yield f"  pair        {pair.name}: {show_data(pair.x)} against {show_data(pair.y)}"
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
