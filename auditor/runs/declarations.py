"""Claims that paths declare: listed from an index where there is one, and loaded when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.errors import DpauditError, SpecificationError
from auditor.runs.dependencies import Surroundings, look_around, watch_loading
from auditor.runs.index import OFF, Index, ListedClaim, ListedEntry, drop_index, keep_index, read_index
from auditor.runs.selection import select_or_suggest
from auditor.targets.cache import find_cache

if TYPE_CHECKING:
    from auditor.claims import Claim


class ChangedError(DpauditError):
    """Something else is declared than an index had."""


class Declarations:
    """Claims of files and folders.

    Without a valid index all are loaded, and one is made for the next process. A process that has loaded other modules
    before, such as that of a test suite, neither reads nor makes one.

    Parameters
    ----------
    paths : sequence of str
        Files and folders that declare claims.
    around : Surroundings, optional
        This process; default what it is now.
    folder : Path, optional
        Where indexes are kept; default in the user's cache folder.

    Attributes
    ----------
    index : Index
        What is declared.
    files : tuple of str
        Files that were loaded; empty if these are all.

    Raises
    ------
    SpecificationError
        If a path does not exist, or what it declares cannot be loaded.
    """

    def __init__(self, paths: Sequence[str], around: Surroundings | None = None, folder: Path | None = None) -> None:
        self.paths = tuple(paths)
        self._around = look_around() if around is None else around
        self._folder = _folder() if folder is None else folder
        if self._around.strangers or os.environ.get(OFF):
            self._folder = None
        self.files: tuple[str, ...] = ()
        self._all_loaded = False
        known = None if self._folder is None else read_index(self._folder, self.paths, self._around)
        self.index = self._load_all() if known is None else known

    def select(self, expression: str | None) -> list[Claim]:
        """Load the claims whose ids match an expression.

        Parameters
        ----------
        expression : str or None
            See `select_claims`; None selects all.

        Returns
        -------
        list of Claim
            The claims, in the order in which they are declared. `files` are what was loaded for them.

        Raises
        ------
        SpecificationError
            If the expression cannot be read, or nothing matches; the message has ids that are close.
        """
        chosen = select_or_suggest(self.index.claims, expression)
        try:
            return self.load({claim.id for claim in chosen})
        except ChangedError:
            return self.load({claim.id for claim in select_or_suggest(self.index.claims, expression)})

    def load(self, ids: Collection[str]) -> list[Claim]:
        """Load some claims, and as few files as can be.

        Parameters
        ----------
        ids : collection of str
            Ids that the index has.

        Raises
        ------
        ChangedError
            If something else is declared than the index had. It has been made again; this happens once at most.

        Notes
        -----
        Valid because: a claim is declared by its file and what that imports, whether or not other files are loaded
        before. A file that leaves something in the process for others (another search path, working directory,
        variable, state of the global generators or way of handling floating-point errors) is noticed when the index is
        made, and then all are loaded together. Otherwise what the files declare by themselves is compared with what
        they declared among all.
        """
        from auditor.claims import registry

        if not self._all_loaded:
            files = self.index.files_of(ids)
            some = not self.index.whole and len(files) < len({entry.file for entry in self.index.entries})
            try:
                claims = registry.load_claims(files if some else self.paths)
                same = self._is_indexed(files if some else None)
            except SpecificationError:
                same = False
            if same:
                self.files = files if some else ()
                return [claim for claim in claims if claim.id in ids]
            if self._folder is not None:
                drop_index(self._folder, self.paths, self._around)
                self._folder = None  # this process has loaded some of them already
            self.index = self._load_all()
            raise ChangedError("claims are not what the index had")
        return [claim for claim in registry.load_claims(self.paths) if claim.id in ids]

    def _is_indexed(self, files: Sequence[str] | None) -> bool:
        """Whether what some files declare by themselves, or all together, is what the index has."""
        if files is None:
            return _list_declared(self.paths, self.index.whole) == self.index
        return _list_declared(files, self.index.whole) == self.index.part(files)

    def _load_all(self) -> Index:
        """Load all claims; keep an index of them if it is valid."""
        watched = nullcontext() if self._folder is None else watch_loading(self._around, self.paths)
        with watched as loading:
            from auditor.claims import registry

            registry.load_claims(self.paths)
        self._all_loaded = True
        index = _list_declared(self.paths, loading is not None and loading.lasting)
        read = None if loading is None else loading.collect(self.paths)
        if read is not None and self._folder is not None:
            keep_index(self._folder, self.paths, self._around, index, read)
        return index


def _folder() -> Path | None:
    try:
        return find_cache("index")
    except RuntimeError:  # a user without a home
        return None


def _list_declared(paths: Sequence[str], whole: bool) -> Index:
    """What some paths declare, which is loaded."""
    from auditor.audits.summary import describe_target
    from auditor.claims import registry

    return Index(
        tuple(
            ListedEntry(entry.id, entry.title, entry.source.document, entry.source.place, file)
            for entry, file in registry.locate_entries(paths)
        ),
        tuple(
            ListedClaim(
                id=claim.id,
                entry=claim.entry,
                guarantee=str(claim.draft.guarantee),
                expected=str(claim.draft.expected),
                level=claim.draft.level,
                mechanism=describe_target(claim.draft.mechanism),
                is_mutant=claim.draft.is_mutant,
                is_exact=claim.draft.curve_of is not None,
                draws_any=claim.draft.draws_any,
            )
            for claim in registry.load_claims(paths)
        ),
        whole,
    )
