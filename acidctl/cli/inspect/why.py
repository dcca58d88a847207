"""`acidctl why`: the proof of a verdict, and what must happen before cleaning may take an entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from acidctl.cli.options.places import DIRECTORY
from acidctl.cli.options.shared import examples, output_option, snapshot_options, storage_options
from acidctl.cli.output.screen import STATE_STYLES

if TYPE_CHECKING:
    from rich.console import Console

    from acidctl.acid.evidence import Evidence
    from acidctl.acid.idruns import IdRun
    from acidctl.acid.proof import Proof, Step
    from acidctl.location.lists import SnapshotLists
    from acidctl.location.snapshot import Snapshot

SCHEMA_VERSION = 1

_LABELS = {
    "what": "is", "write-ids": "write ids", "transaction": "txn", "verdict": "because", "readers": "readers",
    "snapshot": "snapshot", "base": "base", "content": "holds",
}  # fmt: skip
_INDENT = 14


@click.command(
    "why",
    epilog=examples(
        "acidctl why /warehouse/sales.db/orders",
        "acidctl why orders delta_0000003_0000003_0000",
        "acidctl why --write-ids 'sales.orders:12:9:9:7' --valid-txns '900:880:880:' orders base_0000010",
        "acidctl why -o json orders | jq '.[].proofs[] | select(.cleaning.may == \"kept-back\") | .cleaning.next'",
    ),
)
@click.argument("location", metavar="LOCATION", type=DIRECTORY)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@snapshot_options
@storage_options
@output_option("table", "json", "jsonl", default="table")
def command(location: str, names: tuple[str, ...], lists: SnapshotLists, storage: dict[str, str], output: str) -> int:
    """Explain the state of every directory of LOCATION, or in more detail of those that are named.

    It says which base is read and why no other, what takes a directory's place, which write id, transaction or missing
    history blocks it, and whether cleaning may take it, or what must happen first. A snapshot that is refused for "not
    enough history" is explained, too.

    NAME is a directory or a file of the location; its numbers may be written without zeros.
    """
    from acidctl.cli.output.console import Records, note
    from acidctl.cli.output.odd_layouts import OddLayouts
    from acidctl.cli.output.readable import readable
    from acidctl.cli.output.strangers import Strangers
    from acidctl.cli.report.failures import Failures
    from acidctl.errors import AcidctlError, UsageProblem
    from acidctl.location.find import find
    from acidctl.rows.scan.odd_layout import odd_layout

    failures = Failures()
    notes: dict[str, None] = {}
    odd = OddLayouts()
    records = Records(output)
    seen, below = 0, ""
    strangers = Strangers(failures.add)
    for found in find((location,), storage, lists, strangers.observer):
        if names and not found.is_given:
            below = below or found.shown
            continue
        try:
            snapshot = readable(found, failures.add).snapshot(lists)
            report = _Report(snapshot, names)
        except AcidctlError as error:
            if found.is_given:
                raise
            failures.add(error, found.shown)
            continue
        notes |= dict.fromkeys(snapshot.state.notes)
        odd.add(odd_layout(snapshot))
        if output == "table":
            report.print(blank=seen > 0)
        else:
            records.put(report.record())
        seen += 1
        if names:
            break
    if below and not seen:
        raise UsageProblem(f"{location} is no location", f"{below} is one below it", "give the one that holds the NAME")
    if output == "table":
        for text in notes:
            note(text)
        if not seen and not failures.worst:
            note("no table was found there")
    odd.tell()
    return failures.worst


def evidence_of(snapshot: Snapshot) -> Evidence:
    """What proofs of a location are made from; what may be cleaned is asked of the planner of cleanings."""
    from acidctl.acid.evidence import CleaningAnswer, Evidence
    from acidctl.acid.state import EntryKind
    from acidctl.cleaning.plan import plan_cleaning
    from acidctl.cleaning.retention import Policy
    from acidctl.errors import HistoryError, RefusedError
    from acidctl.location.publication import half_published

    unfinished = frozenset(staging for staging, _ in half_published(snapshot))
    try:
        plan = plan_cleaning(snapshot, Policy(leftovers=True))
    except (HistoryError, RefusedError) as error:
        answer = CleaningAnswer(refusal=str(error), hint=error.hint, unfinished=unfinished)
    else:
        staging = {verdict.name for verdict in snapshot.state.verdicts if verdict.kind is EntryKind.STAGING}
        waiting = {one.name: one.reason for one in plan.waiting}
        against = dict.fromkeys(plan.names, "") | dict(plan.kept_back) | waiting
        leftovers = {name: text for name, text in against.items() if name in staging}
        removable = frozenset(plan.names) - staging
        answer = CleaningAnswer(removable, dict(plan.kept_back), "", "", unfinished, waiting, leftovers)
    return Evidence(snapshot.listing, snapshot.state, snapshot.write_ids, snapshot.txns, answer)


def chosen(snapshot: Snapshot, names: Sequence[str], proofs: Sequence[Proof]) -> list[Proof]:
    """The proofs that were asked for; all of them without names.

    Raises:
        NotFoundError: the location holds nothing of that name; the hint has near ones.
    """
    if not names:
        return list(proofs)
    by_name = {proof.name: proof for proof in proofs}
    return [by_name[_entry(snapshot, name, list(by_name))] for name in dict.fromkeys(names)]


def _entry(snapshot: Snapshot, typed: str, known: Sequence[str]) -> str:
    from acidctl.errors import NotFoundError
    from acidctl.nearest import asked, did_you_mean

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
    """A name without the zeros that Hive pads its numbers with."""
    from acidctl.acid.names import AcidNameError, parse_directory

    try:
        directory = parse_directory(name)
    except AcidNameError:
        return name
    return directory.canonical_name if directory else name


class _Report:
    """The proofs of one location, for people and for programs.

    Raises:
        NotFoundError: of a name that is not there.
    """

    def __init__(self, snapshot: Snapshot, names: Sequence[str]) -> None:
        from acidctl.acid.proof import explain_history, prove_all

        self._snapshot = snapshot
        self._evidence = evidence_of(snapshot)
        self._proofs = chosen(snapshot, names, prove_all(self._evidence))
        self._history = explain_history(self._evidence)
        self._detailed = bool(names)

    def record(self) -> dict[str, Any]:
        """The JSON form, schema_version 1."""
        snapshot = self._snapshot
        state, ids, txns = snapshot.state, snapshot.write_ids, snapshot.txns
        return {
            "schema_version": SCHEMA_VERSION,
            "location": snapshot.fs.display(snapshot.path),
            "snapshot": {
                "writeIds": None if ids.is_everything else str(ids),
                "highWatermark": None if ids.is_everything else ids.high_watermark,
                "validTxns": None if txns is None else str(txns),
            },
            "base": state.base.name if state.base else None,
            "historyProblem": state.history_problem.text if state.history_problem else None,
            "history": [_step_record(step) for step in self._history],
            "proofs": [_record(proof) for proof in self._proofs],
            "notes": list(state.notes),
        }

    def print(self, *, blank: bool) -> None:
        """For people: short proofs by state, or long ones of what was named."""
        from acidctl.cli.output.console import console
        from acidctl.printable import printable

        screen = console()
        if blank:
            screen.print()
        screen.print(printable(self._snapshot.fs.display(self._snapshot.path)), style="bold", soft_wrap=True)
        if self._history:
            screen.print("not enough history: Hive refuses to read this snapshot", style="red", soft_wrap=True)
            for step in self._history:
                _labelled(screen, _LABELS[step.topic], step.text)
        if self._detailed:
            for proof in self._proofs:
                _long(screen, proof)
        else:
            self._overview(screen)

    def _overview(self, screen: Console) -> None:
        from acidctl.acid.proof import why_not_chosen
        from acidctl.acid.state import EntryKind

        state = self._snapshot.state
        bases = [verdict for verdict in state.verdicts if verdict.kind is EntryKind.BASE]
        if state.base:
            _labelled(screen, "base", f"{state.base.name} is read")
        elif not self._proofs:
            _labelled(screen, "", "the location is empty")
        elif not self._history:
            _labelled(screen, "base", "none that this snapshot may use" if bases else "none: nothing was compacted yet")
        for verdict in bases:
            if verdict is not state.base and not self._history:
                _labelled(screen, "", f"{verdict.name} is not: {why_not_chosen(verdict, self._evidence)}")
        for group in _groups(self._proofs):
            for proof in group:
                _short(screen, proof)
            _cleaning(screen, group[0])


def _step_record(step: Step) -> dict[str, Any]:
    return {"topic": step.topic, "text": step.text, "names": list(step.names), "ids": list(step.ids)}


def _record(proof: Proof) -> dict[str, Any]:
    return {
        "name": proof.name,
        "kind": proof.kind.value,
        "state": proof.state.value,
        "reason": proof.reason.text,
        "reasonCode": proof.reason.code,
        "supersededBy": list(proof.reason.by),
        "writeIds": [_run_record(run) for run in proof.write_ids],
        "visibilityTxn": {"id": proof.txn[0], "status": _status(proof.txn[1].value)} if proof.txn else None,
        "steps": [_step_record(step) for step in proof.steps],
        "cleaning": {"may": proof.may_clean.value, "text": proof.cleaning, "next": proof.next or None},
    }


def _run_record(run: IdRun) -> dict[str, Any]:
    return {"first": run.first, "last": run.last, "status": _status(run.status.value)}


def _status(text: str) -> str:
    """One word, for programs: ``above the high watermark`` is ``above``."""
    return text.partition(" ")[0]


def _groups(proofs: Sequence[Proof]) -> list[list[Proof]]:
    """By state, hidden entries last; neighbours of which cleaning says the same are together."""
    states = list(STATE_STYLES)
    groups: dict[tuple[object, ...], list[Proof]] = {}
    for proof in sorted(proofs, key=lambda proof: (proof.reason.code == "hidden", states.index(proof.state.value))):
        key = (proof.reason.code == "hidden", proof.state, proof.cleaning, proof.next)
        groups.setdefault(key, []).append(proof)
    return list(groups.values())


def _short(screen: Console, proof: Proof) -> None:
    """Name, state and the reason: in one line where there is room."""
    from rich.cells import cell_len

    from acidctl.printable import printable

    topics = ("what", "content") if proof.reason.code == "hidden" else ("verdict",)
    text = "; ".join(step.text for step in proof.steps if step.topic in topics)
    start = cell_len(printable(proof.name)) + len(proof.state.value) + 4
    if start + cell_len(printable(text)) <= screen.width:
        _title(screen, proof, text)
    else:
        _title(screen, proof)
        _labelled(screen, "", text)


def _long(screen: Console, proof: Proof) -> None:
    _title(screen, proof)
    for step in proof.steps:
        _labelled(screen, _LABELS[step.topic], step.text)
    _cleaning(screen, proof)


def _title(screen: Console, proof: Proof, text: str = "") -> None:
    from rich.text import Text

    from acidctl.printable import printable

    line = Text(printable(proof.name))
    line.append("  ")
    line.append(proof.state.value, STATE_STYLES[proof.state.value])
    line.append(f"  {printable(text)}" if text else "")
    screen.print(line, soft_wrap=True)


def _cleaning(screen: Console, proof: Proof) -> None:
    _labelled(screen, "clean", proof.cleaning)
    if proof.next and proof.next not in proof.cleaning:
        label = "then" if proof.may_clean.value == "yes" else "clears" if proof.kind.value == "staging" else "needs"
        _labelled(screen, label, proof.next)


def _labelled(screen: Console, label: str, text: str) -> None:
    """A label in the margin and a sentence, broken between words on a terminal."""
    from rich.text import Text

    from acidctl.printable import printable

    for place, part in enumerate(_broken(printable(text), screen)):
        line = Text("  ")
        line.append((label if not place else "").ljust(_INDENT - 2), "dim")
        line.append(part)
        line.rstrip()
        screen.print(line, soft_wrap=True)


def _broken(text: str, screen: Console) -> Iterator[str]:
    import textwrap

    width = max(20, screen.width - _INDENT)
    yield from textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
