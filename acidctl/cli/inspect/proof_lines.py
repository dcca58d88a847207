"""The proofs of the states of a location's directories, as `acidctl why` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acidctl.acid.names import acid_directory
from acidctl.acid.reasons import Code
from acidctl.acid.state import EntryKind
from acidctl.base.errors import NotFoundError
from acidctl.base.nearest import asked, did_you_mean
from acidctl.base.printable import printable
from acidctl.cleaning.advice import Action
from acidctl.cleaning.explain import decided, explain_history, proof_inputs, prove_all
from acidctl.cli.output.console import broken, console
from acidctl.cli.output.screen import STATE_STYLES
from acidctl.wording import text_of

if TYPE_CHECKING:
    from rich.console import Console

    from acidctl.cleaning.explain import ProofStep, VerdictProof
    from acidctl.location.snapshot import Snapshot

_LABELS = {
    "what": "is", "write-ids": "write ids", "transaction": "txn", "verdict": "because", "readers": "readers",
    "snapshot": "snapshot", "base": "base", "content": "holds",
}  # fmt: skip

_INDENT = 14


def _named(snapshot: Snapshot, names: Sequence[str], proofs: Sequence[VerdictProof]) -> list[VerdictProof]:
    """Return the proofs of the named entries, or all proofs without names.

    Raises:
        NotFoundError: the location has no entry of that name; the hint has similar names.
    """
    if not names:
        return list(proofs)
    by_name = {proof.name: proof for proof in proofs}
    return [by_name[_entry(snapshot, name, list(by_name))] for name in dict.fromkeys(names)]


def _entry(snapshot: Snapshot, typed: str, known: Sequence[str]) -> str:
    here = snapshot.fs.display(snapshot.path)
    # A shell completes paths: `orders/delta_1_1/` and `delta_1_1/bucket_00000` mean the entry.
    name = typed.removeprefix(f"{here}/").strip("/").partition("/")[0]
    if name in known:
        return name
    same = [other for other in known if _spelling(other) == _spelling(name)]
    if len(same) == 1:
        return same[0]
    prefix = [other for other in known if _spelling(other).startswith(_spelling(name) + "_")]
    otherwise = f"`acidctl ls -a {here}` lists what is there"
    raise NotFoundError(
        f"nothing in {here} is called {typed}",
        "" if known else "it is empty",
        asked((same or prefix)[:5]) or did_you_mean(name, known, otherwise),
    )


def _spelling(name: str) -> str:
    """Return a name without the zeros with which Hive pads numbers."""
    directory = acid_directory(name)
    return directory.canonical_name if directory else name


class LocationProof:
    """The proofs of one location, for people and for programs.

    Raises:
        NotFoundError: one of the names does not exist.
    """

    def __init__(self, snapshot: Snapshot, names: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._evidence = proof_inputs(snapshot)
        self._proofs = _named(snapshot, names, prove_all(self._evidence))
        self._history = explain_history(self._evidence)
        self._detailed = bool(names)

    def record(self) -> dict[str, Any]:
        snapshot = self._snapshot
        state, ids, txns = snapshot.state, snapshot.write_ids, snapshot.txns
        return {
            "location": snapshot.fs.display(snapshot.path),
            "snapshot": {
                "writeIds": None if ids.is_everything else str(ids),
                "highWatermark": None if ids.is_everything else ids.high_watermark,
                "validTxns": None if txns is None else str(txns),
            },
            "snapshotSource": snapshot.source.record,
            "base": state.base.name if state.base else None,
            "historyProblem": text_of(state.history_problem) if state.history_problem else None,
            "history": [_step_record(step) for step in self._history],
            "proofs": [_record(proof) for proof in self._proofs],
            "notes": [text_of(note) for note in state.notes],
        }

    def print(self, *, blank: bool) -> None:
        """Print short proofs by state, or long proofs of the named entries."""
        screen = console()
        if blank:
            screen.print()
        screen.print(printable(self._snapshot.fs.display(self._snapshot.path)), style="bold", soft_wrap=True)
        if self._history:
            screen.print("not enough history: Hive refuses to read this snapshot", style="red", soft_wrap=True)
            for step in self._history:
                _print_labelled(screen, _LABELS[step.topic], step.text)
        if self._detailed:
            for proof in self._proofs:
                _print_long(screen, proof)
        else:
            self._overview(screen)

    def _overview(self, screen: Console) -> None:
        state = self._snapshot.state
        bases = [verdict for verdict in state.verdicts if verdict.kind is EntryKind.BASE]
        if state.base:
            _print_labelled(screen, "base", f"{state.base.name} is read")
        elif not self._proofs:
            _print_labelled(screen, "", "the location is empty")
        elif not self._history:
            _print_labelled(
                screen, "base", "none that this snapshot may use" if bases else "none: nothing was compacted yet"
            )
        for verdict in bases:
            if verdict is not state.base and not self._history:
                _print_labelled(screen, "", f"{verdict.name} is not: {decided(verdict, self._evidence)}")
        for group in _groups(self._proofs):
            for proof in group:
                _print_short(screen, proof)
            _cleaning(screen, group[0])


def _step_record(step: ProofStep) -> dict[str, Any]:
    return {"topic": step.topic, "text": step.text, "names": list(step.names), "ids": list(step.ids)}


def _record(proof: VerdictProof) -> dict[str, Any]:
    verdict = proof.verdict
    return {
        "name": proof.name,
        "kind": verdict.kind.value,
        "state": verdict.state.value,
        "reason": text_of(verdict.reason),
        "reasonCode": verdict.reason.code,
        "supersededBy": list(verdict.reason.by),
        "writeIds": [{"first": run.first, "last": run.last, "status": run.status.value} for run in proof.write_ids],
        "visibilityTxn": {"id": proof.txn[0], "status": proof.txn[1].value} if proof.txn else None,
        "steps": [_step_record(step) for step in proof.steps],
        "cleaning": {
            "may": proof.may_clean.value,
            "code": proof.cleaning.code,
            "text": _may_text(proof),
            "next": "; ".join(map(str, proof.next)) or None,
            "nextCodes": [advice.action for advice in proof.next],
        },
    }


def _may_text(proof: VerdictProof) -> str:
    return f"{proof.may_clean.value.replace('-', ' ')}: {text_of(proof.cleaning)}"


def _groups(proofs: Sequence[VerdictProof]) -> list[list[VerdictProof]]:
    """Group the proofs by state and by the answer about cleaning; hidden entries come last."""
    states = list(STATE_STYLES)
    groups: dict[tuple[object, ...], list[VerdictProof]] = {}
    for proof in sorted(proofs, key=lambda proof: (proof.is_hidden, states.index(proof.verdict.state.value))):
        key = (proof.is_hidden, proof.verdict.state, proof.cleaning, proof.next)
        groups.setdefault(key, []).append(proof)
    return list(groups.values())


def _print_short(screen: Console, proof: VerdictProof) -> None:
    from rich.cells import cell_len  # noqa: PLC0415 - JSON needs none of rich

    topics = ("what", "content") if proof.is_hidden else ("verdict",)
    text = "; ".join(step.text for step in proof.steps if step.topic in topics)
    start = cell_len(printable(proof.name)) + len(proof.verdict.state.value) + 4
    if start + cell_len(printable(text)) <= screen.width:
        _title(screen, proof, text)
    else:
        _title(screen, proof)
        _print_labelled(screen, "", text)


def _print_long(screen: Console, proof: VerdictProof) -> None:
    _title(screen, proof)
    for step in proof.steps:
        _print_labelled(screen, _LABELS[step.topic], step.text)
    _cleaning(screen, proof)


def _title(screen: Console, proof: VerdictProof, text: str = "") -> None:
    from rich.text import Text  # noqa: PLC0415 - JSON needs none of rich

    state = proof.verdict.state.value
    rest = f"  {printable(text)}" if text else ""
    screen.print(Text.assemble(printable(proof.name), "  ", (state, STATE_STYLES[state]), rest), soft_wrap=True)


def _cleaning(screen: Console, proof: VerdictProof) -> None:
    _print_labelled(screen, "clean", _may_text(proof))
    is_said = proof.cleaning.code is Code.ONLY_AS_LEFTOVER and proof.next[0].action is Action.CLEAN
    if proof.next and not is_said:
        label = {"yes": "then", "staging": "clears"}
        key = proof.may_clean.value if proof.may_clean.value in label else proof.verdict.kind.value
        _print_labelled(screen, label.get(key, "needs"), "; ".join(map(str, proof.next)))


def _print_labelled(screen: Console, label: str, text: str) -> None:
    from rich.text import Text  # noqa: PLC0415 - JSON needs none of rich

    for place, part in enumerate(broken(printable(text), max(20, screen.width - _INDENT))):
        line = Text.assemble("  ", ((label if not place else "").ljust(_INDENT - 2), "dim"), part)
        line.rstrip()
        screen.print(line, soft_wrap=True)
