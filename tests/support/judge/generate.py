"""Draws histories: `random_history(seed, size)` from a seed, `histories()` as a hypothesis strategy that shrinks."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from support.judge.history import (
    ABORT,
    COMMIT,
    OPEN,
    QUIRK_LIVE_SIDE_FILE_V2,
    QUIRK_ORIGINAL_COPIES,
    QUIRK_ORIGINALS_CODEC_V1,
    Batch,
    Compaction,
    History,
    Op,
    Step,
    Transaction,
)
from support.judge.hive import DELETE, INSERT, UPDATE, Row
from support.judge.values import SCHEMAS, Choice, DrawChoice, SeedChoice, row_of

_CODECS = ("ZLIB", "SNAPPY", "NONE")


def random_history(
    seed: int | str,
    size: int = 8,
    quirks: frozenset[str] = frozenset(),
    version: int | None = None,
    once: bool = False,
) -> History:
    """The history of a seed: up to `size` steps of a few rows each."""
    return build(SeedChoice(seed), size, quirks, version, once)


def histories(
    max_size: int = 8, quirks: frozenset[str] = frozenset(), version: int | None = None, once: bool = False
) -> st.SearchStrategy[History]:
    """Hypothesis strategy of histories with at most `max_size` steps."""

    @st.composite
    def strategy(draw: Any) -> History:
        return build(DrawChoice(draw), max_size, quirks, version, once)

    return strategy()


def build(choice: Choice, size: int, quirks: frozenset[str], version: int | None, once: bool = False) -> History:
    """One history; v1 in a quarter of the draws, bucket codec V1 in a third of the v2 ones."""
    schema = choice.pick(SCHEMAS)
    chosen = version or (1 if choice.chance(25) else 2)
    codec = 1 if chosen == 2 and choice.chance(35) else 0
    buckets = choice.integer(1, 3)
    originals: list[tuple[int, tuple[Row, ...]]] = []
    if (codec == 0 or QUIRK_ORIGINALS_CODEC_V1 in quirks) and choice.chance(30):
        files = list(range(buckets))
        if QUIRK_ORIGINAL_COPIES in quirks:
            files += [bucket for bucket in range(buckets) if choice.chance(60)]
        originals = [(bucket, choice.several(1, 4, lambda c: row_of(c, schema))) for bucket in files]
    steps = choice.several(min(1, size), size, lambda c: _step(c, schema, buckets, chosen, codec, quirks))
    for at, step in enumerate(steps):
        if isinstance(step, Batch) and step.left_open:
            steps = steps[: at + 1]  # its writer lives on; compactions behind it would only wait
            break
    orc = {"orc.compress": choice.pick(_CODECS)}
    return History(schema, buckets, chosen, codec, tuple(originals), steps, tuple(orc.items()), quirks, once)


def _step(choice: Choice, schema: str, buckets: int, version: int, codec: int, quirks: frozenset[str]) -> Step:
    dice = choice.integer(0, 99)
    if dice >= 82:
        return Compaction("major" if choice.chance(40) else "minor", choice.chance(30))
    if dice >= 70:
        live = codec == 0 and (version == 1 or QUIRK_LIVE_SIDE_FILE_V2 in quirks) and choice.chance(50)
        transactions = choice.several(2, 4, lambda c: _batched(c, schema, buckets))
        if live:
            transactions = (*transactions[:-1], (OPEN, transactions[-1][1]))
        return Batch(transactions, live)
    statements = choice.several(
        1, 3 if choice.chance(30) else 1, lambda c: c.several(1, 5, lambda d: _op(d, schema, buckets))
    )
    return Transaction(statements, _outcome(choice), not choice.chance(20))


def _batched(choice: Choice, schema: str, buckets: int) -> tuple[str, tuple[tuple[int, Row], ...]]:
    rows = choice.several(0, 3, lambda c: (c.integer(0, buckets - 1), row_of(c, schema)))
    return (_outcome(choice, open_too=False), rows)


def _outcome(choice: Choice, open_too: bool = True) -> str:
    if choice.chance(12):
        return ABORT
    return OPEN if open_too and choice.chance(6) else COMMIT


def _op(choice: Choice, schema: str, buckets: int) -> Op:
    kind = choice.pick((INSERT, INSERT, INSERT, UPDATE, UPDATE, DELETE))
    target = 0 if kind == INSERT else choice.integer(0, 200)
    row = None if kind == DELETE else row_of(choice, schema)
    return Op(kind, choice.integer(0, buckets - 1), target, row)
