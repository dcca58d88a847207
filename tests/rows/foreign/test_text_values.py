"""Fields of text as values: decimals of every size, against Python's own."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from acidctl.orc.types import OrcType
from acidctl.rows.foreign.text_values import values_of


@st.composite
def numbers(draw: st.DrawFn) -> tuple[int, int, list[str]]:
    """Precision and scale, and numbers that fit or just do not."""
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    digits = st.text("0123456789", max_size=40)
    texts = st.builds(lambda sign, whole, rest: f"{sign}{whole}.{rest}", st.sampled_from(["", "-"]), digits, digits)
    edge = 10 ** (precision - scale)
    edges = st.sampled_from([str(edge), str(edge - 1), f"-{edge}", f"-{edge - 1}", "0", "-0.5"])
    return precision, scale, draw(st.lists(texts.filter(lambda text: len(text) > 2) | edges, min_size=1, max_size=6))


def rounded(text: str, precision: int, scale: int) -> Decimal | None:
    with localcontext(prec=200):
        value = Decimal(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        return value if abs(value) < 10 ** (precision - scale) else None


@given(numbers())
@example((38, 38, ["0.05", "-0.5", "0", ".1", "1", "-0.99999999999999999999999999999999999999"]))
@example((38, 18, ["99999999999999999999.5", "-1", "100000000000000000000"]))
def test_decimals_are_rounded_half_up_and_null_where_they_do_not_fit(case: tuple[int, int, list[str]]) -> None:
    precision, scale, texts = case
    kind = OrcType("decimal", precision=precision, scale=scale)
    found = values_of(pa.array([text.encode() for text in texts], pa.binary()), kind, "file")
    assert found.to_pylist() == [rounded(text, precision, scale) for text in texts]
