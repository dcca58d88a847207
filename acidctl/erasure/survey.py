"""A location before it is searched: its snapshot, all of its files, and the directories that cannot be listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from acidctl.acid.state import Verdict
from acidctl.cleaning.explain import ProofInputs, VerdictProof, proof_inputs, prove_all
from acidctl.erasure.holders import PhysicalFile, physical_files
from acidctl.errors import AcidctlError, BadDataError
from acidctl.location.find import Found
from acidctl.location.lists import SnapshotLists
from acidctl.location.snapshot import Look, Snapshot, look_at, take_snapshot


@dataclass(frozen=True)
class Survey:
    """One location before it is searched.

    Attributes:
        files: all files that may hold rows.
        closed: the errors of directories that cannot be listed, by their paths as a user would type them.
    """

    found: Found
    snapshot: Snapshot
    files: tuple[PhysicalFile, ...]
    closed: Mapping[str, AcidctlError]

    @cached_property
    def proof_inputs(self) -> ProofInputs:
        """Return the state of cleaning for it."""
        return proof_inputs(self.snapshot)

    @cached_property
    def proofs(self) -> Mapping[str, VerdictProof]:
        """Return the explanation of each entry's state, and what must happen before it is removed, by name."""
        return {proof.name: proof for proof in prove_all(self.proof_inputs)}


def survey(found: Found, lists: SnapshotLists) -> Survey:
    """List a location, once unless a compaction ends meanwhile.

    Raises:
        NotFoundError, AccessError, StorageError, UsageProblem: it cannot be listed.
        RefusedError, ConflictError: see :meth:`acidctl.location.find.Found.snapshot`.
    """
    looked, closed = _looked(found)
    again, lists = looked.settled(lists)
    if again is not looked:
        looked, closed = _looked(again)
    try:
        snapshot = looked.snapshot(lists, readers=True, settled=False)
    except BadDataError as error:
        path = looked.location.path
        closed[found.shown] = error
        snapshot = take_snapshot(found.fs, path, on_bad_metadata=lambda _path, _error: None, look=looked.look)
    verdicts: dict[str, Verdict] = {verdict.name: verdict for verdict in snapshot.state.verdicts}
    return Survey(looked, snapshot, tuple(physical_files(found.fs, snapshot.listing, verdicts)), closed)


def _looked(found: Found) -> tuple[Found, dict[str, AcidctlError]]:
    closed: dict[str, AcidctlError] = {}

    def tell(path: str, error: AcidctlError) -> None:
        closed[found.fs.display(f"{found.location.path}/{path}")] = error

    look: Look = look_at(found.fs, found.location.path, found.top, tell, hidden=True)
    return replace(found, ahead=look), closed
