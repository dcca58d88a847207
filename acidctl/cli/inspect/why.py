"""`acidctl why`: Explain a directory's state, and what cleaning waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from acidctl.acid.names import acid_directory
from acidctl.acid.reasons import Code
from acidctl.base.errors import AcidctlError, NotFoundError, UsageProblem
from acidctl.base.nearest import asked, did_you_mean, near_names
from acidctl.base.printable import printable
from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.command_lines import line_for
from acidctl.cli.output.console import Records, broken, console
from acidctl.cli.output.screen import STATE_STYLES
from acidctl.cli.report.outcomes import RunReporter
from acidctl.wording import text_of

if TYPE_CHECKING:
    from rich.console import Console

    from acidctl.cleaning.explain import ProofInputs, ProofStep, VerdictProof
    from acidctl.location.snapshot import Snapshot
    from acidctl.location.table_location import TableLocation
    from acidctl.overview.location_status import LocationStatus

_LABELS = {
    "what": "is", "write-ids": "write ids", "transaction": "txn", "verdict": "because", "readers": "readers",
    "snapshot": "snapshot", "base": "base", "content": "holds",
}  # fmt: skip
_INDENT = 14
_ZEROS = re.compile("(?<=_)0+(?=[0-9])")


@verb_command(
    "why",
    None,
    place=shared.one_place("LOCATION"),
    extras=(click.argument("names", nargs=-1, metavar="[NAME...]"),),
    source=shared.snapshot_of(),
    forms=("table", "json", "jsonl"),
    isolates=True,
)
def command(call: Call[None], *, names: tuple[str, ...]) -> int:
    """Explain the state of every directory of LOCATION, or in more detail of those that are named.

    It says which base is read and why no other, what takes a directory's place, which write id, transaction or missing
    history blocks it, and whether cleaning may take it, or what must happen first. It also
    explains why a snapshot is refused for "not enough history".

    NAME is a directory or a file of the location; its numbers may be written without zeros.
    """
    from acidctl.cleaning.explain import explain_history, proof_inputs, prove_all
    from acidctl.verbs.reading.inspect import InspectOptions, inspect

    events, output, records = RunReporter(), call.output, Records(call.output)
    seen, below = 0, ""

    def named(places: Iterator[TableLocation]) -> Iterator[TableLocation]:
        nonlocal below
        for found in places:
            if found.is_given:
                yield found
                return
            below = below or found.shown

    choose = named if names else iter
    for found, result in inspect(call.selection, InspectOptions(partial=True), events, choose=choose):
        if isinstance(result, AcidctlError):
            if found.is_given:
                raise result
            events.failed(found.shown, result)
            continue
        for error in result.closed:
            events.failed(found.shown, error)
        status, inputs = result.status, proof_inputs(result.snapshot)
        proofs = _named(result.snapshot, names, prove_all(inputs))
        events.remember(map(text_of, status.notes) if output == "table" else (), status.warnings)
        if output != "table":
            records.put(_record(status, result.snapshot, explain_history(inputs), proofs))
        else:
            if seen:
                console().print()
            _print(status.shown, inputs, proofs, is_detailed=bool(names))
            if not (status.evidence.may_change or names):
                _print_labelled(console(), "", f"not known to be transactional: {status.evidence.text}")
        seen += 1
    if below and not seen:
        raise UsageProblem(
            f"{call.selection.places[0]} is not a location",
            f"{below} is one below it",
            "give the one that holds the NAME",
        )
    if not names:
        events.looked_through()
    events.tell_notes()
    events.tell_strangers()
    return events.status


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
    here = snapshot.shown
    # A shell completes paths: `orders/delta_1_1/` and `delta_1_1/bucket_00000` mean the entry.
    name = typed.removeprefix(f"{here}/").strip("/").partition("/")[0]
    if name in known:
        return name
    same = [other for other in known if _spelling(other) == _spelling(name)]
    if len(same) == 1:
        return same[0]
    prefix = [other for other in known if _spelling(other).startswith(_spelling(name) + "_")]
    otherwise = f"`{line_for(('ls', '-a'), [here])}` lists what is there"
    raise NotFoundError(
        f"nothing in {here} is called {typed}",
        "" if known else "it is empty",
        asked((same or prefix or _near(name, known))[:5]) or did_you_mean(name, known, otherwise),
    )


def _near(name: str, known: Sequence[str]) -> list[str]:
    """Return the entries with a similar word and the same numbers, without the zeros with which Hive pads them."""
    typed, short = _ZEROS.sub("", name), {_ZEROS.sub("", other): other for other in known}
    same = [other for other in short if re.findall("[0-9]+", other) == re.findall("[0-9]+", typed)]
    return [short[near] for near in near_names(typed, same)]


def _spelling(name: str) -> str:
    """Return a name without the zeros with which Hive pads numbers."""
    directory = acid_directory(name)
    return directory.canonical_name if directory else name


def _record(
    status: LocationStatus, snapshot: Snapshot, history: Sequence[ProofStep], proofs: Sequence[VerdictProof]
) -> dict[str, Any]:
    ids, txns, of_location = snapshot.write_ids, snapshot.txns, status.record()
    return {
        "location": status.location,
        "name": of_location["name"],
        "snapshot": {
            "writeIds": None if ids.is_everything else str(ids),
            "highWatermark": None if ids.is_everything else ids.high_watermark,
            "validTxns": None if txns is None else str(txns),
        },
        **{key: of_location[key] for key in ("snapshotSource", "base", "historyProblem", "notes")},
        "history": list(map(_step_record, history)),
        "proofs": list(map(_proof_record, proofs)),
    }


def _step_record(step: ProofStep) -> dict[str, Any]:
    return {"topic": step.topic, "text": step.text, "names": list(step.names), "ids": list(step.ids)}


def _proof_record(proof: VerdictProof) -> dict[str, Any]:
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
        "steps": list(map(_step_record, proof.steps)),
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


def _print(shown: str, inputs: ProofInputs, proofs: Sequence[VerdictProof], *, is_detailed: bool) -> None:
    """Print short proofs by state, or long proofs of the named entries."""
    from acidctl.cleaning.explain import explain_history

    screen, history = console(), explain_history(inputs)
    screen.print(printable(shown), style="bold", soft_wrap=True)
    if history:
        screen.print("not enough history: Hive refuses to read this snapshot", style="red", soft_wrap=True)
        for step in history:
            _print_labelled(screen, _LABELS[step.topic], step.text)
    if not (is_detailed or history):
        _print_bases(screen, inputs, proofs)
    for proof in proofs if is_detailed else ():
        _print_title(screen, proof)
        for step in proof.steps:
            _print_labelled(screen, _LABELS[step.topic], step.text)
        _print_cleaning(screen, proof)
    for group in () if is_detailed else _groups(proofs):
        for proof in group:
            topics = ("what", "content") if proof.is_hidden else ("verdict",)
            _print_title(screen, proof, "; ".join(step.text for step in proof.steps if step.topic in topics))
        _print_cleaning(screen, group[0])


def _print_bases(screen: Console, inputs: ProofInputs, proofs: Sequence[VerdictProof]) -> None:
    """Print which base is read, and why each other is not."""
    from acidctl.acid.state import EntryKind
    from acidctl.cleaning.explain import decided

    state = inputs.state
    bases = [verdict for verdict in state.verdicts if verdict.kind is EntryKind.BASE]
    text = "none that this snapshot may use" if bases else "none: nothing was compacted yet"
    if state.base or proofs:
        _print_labelled(screen, "base", f"{state.base.name} is read" if state.base else text)
    else:
        _print_labelled(screen, "", "the location is empty")
    for verdict in bases:
        if verdict is not state.base:
            _print_labelled(screen, "", f"{verdict.name} is not: {decided(verdict, inputs)}")


def _groups(proofs: Sequence[VerdictProof]) -> list[list[VerdictProof]]:
    """Group the proofs by state and by the answer about cleaning; hidden entries come last."""
    states = list(STATE_STYLES)
    groups: dict[tuple[object, ...], list[VerdictProof]] = {}
    for proof in sorted(proofs, key=lambda proof: (proof.is_hidden, states.index(proof.verdict.state.value))):
        key = (proof.is_hidden, proof.verdict.state, proof.cleaning, proof.next)
        groups.setdefault(key, []).append(proof)
    return list(groups.values())


def _print_title(screen: Console, proof: VerdictProof, text: str = "") -> None:
    """Print an entry, its state and a text, which goes on a line of its own if the screen is too narrow."""
    from rich.text import Text

    state = proof.verdict.state.value
    line = Text.assemble(printable(proof.name), "  ", (state, STATE_STYLES[state]))
    whole = Text.assemble(line, f"  {printable(text)}" if text else "")
    fits = whole.cell_len <= screen.width
    screen.print(whole if fits else line, soft_wrap=True)
    if not fits:
        _print_labelled(screen, "", text)


def _print_cleaning(screen: Console, proof: VerdictProof) -> None:
    from acidctl.cleaning.leftovers import Action

    _print_labelled(screen, "clean", _may_text(proof))
    is_said = proof.cleaning.code is Code.ONLY_AS_LEFTOVER and proof.next[0].action is Action.CLEAN
    if proof.next and not is_said:
        label = {"yes": "then", "staging": "clears"}
        key = proof.may_clean.value if proof.may_clean.value in label else proof.verdict.kind.value
        _print_labelled(screen, label.get(key, "needs"), "; ".join(map(str, proof.next)))


def _print_labelled(screen: Console, label: str, text: str) -> None:
    from rich.text import Text

    for place, part in enumerate(broken(printable(text), max(20, screen.width - _INDENT))):
        line = Text.assemble("  ", ((label if not place else "").ljust(_INDENT - 2), "dim"), part)
        line.rstrip()
        screen.print(line, soft_wrap=True)
