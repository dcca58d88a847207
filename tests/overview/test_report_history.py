"""Reports one after the other: what a line of the history says, and what is passed over."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acidctl.overview.report_history import FIGURES, MOST_MOMENTS, PastReport, earlier, moments_in, text_with

moments = st.builds(
    PastReport,
    st.floats(0, 1e10),
    st.lists(st.text(), min_size=1, max_size=3).map(tuple),
    st.dictionaries(st.sampled_from(FIGURES), st.integers(0, (1 << 63) - 1)),
)


@given(st.lists(moments, max_size=5), moments)
def test_what_is_written_is_read_again(before: list[PastReport], new: PastReport) -> None:
    text = text_with(before, new)
    assert text.isascii()
    assert moments_in(text) == sorted([*before, new], key=lambda one: one.at)


@given(st.text())
def test_anything_else_is_passed_over(text: str) -> None:
    assert moments_in(text) == [] or text.lstrip().startswith("{")


def test_damaged_lines_are_passed_over_and_strange_figures_too() -> None:
    good = PastReport(5.0, ("/w",), {"bytes": 7})
    lines = [
        "", "null", "[]", "{}", '{"schema_version": 2, "at": 1, "where": []}',
        '{"schema_version": 1, "at": "x", "where": []}',
        '{"schema_version": 1, "at": 1e999, "where": []}', '{"schema_version": 1, "at": 1, "where": [7]}',
        '{"schema_version": 1, "at": 1, "where": ["' + "x" * (1 << 17) + '"]}', "[" * 100_000,
    ]  # fmt: skip
    odd = '{"schema_version": 1, "at": 6, "where": ["/w"], "bytes": -1, "files": true, "deltas": 1.5, "due": 3, "x": 1}'
    found = moments_in("\n".join([*lines, good.line(), odd]))
    assert found == [good, PastReport(6.0, ("/w",), {"due": 3})]


def test_only_those_of_the_same_places_and_from_before_count() -> None:
    here, there, later = PastReport(1.0, ("/a",)), PastReport(2.0, ("/b",)), PastReport(9.0, ("/a",))
    assert earlier([here, there, later], ["/a"], 5.0) == [here]


def test_the_oldest_go() -> None:
    many = [PastReport(float(at), ("/w",)) for at in range(MOST_MOMENTS)]
    assert moments_in(text_with(many, PastReport(1e6, ("/w",))))[0].at == 1.0
