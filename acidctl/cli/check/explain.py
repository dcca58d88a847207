"""`acidctl explain`: what a code, an exit status or a rule means, and what to do."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from acidctl.cli.options import shared


def _known(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    from acidctl.cli.check.work.explain import known_words  # noqa: PLC0415 - only where a shell asks

    return [CompletionItem(word) for word in known_words() if word.lower().startswith(incomplete.lower())]


@shared.command(
    "explain",
    "acidctl explain few-deltas",
    "acidctl explain 14",
    "acidctl explain V26",
    "acidctl explain base_0000010_v0000123",
    "acidctl explain -o json superseded-by-base | jq -r '.[].todo'",
)
@click.argument("words", nargs=-1, metavar="[WORD...]", shell_complete=_known)
@shared.output_option("table", "json", "jsonl", default="table")
@shared.by_work(pages=True)
def command() -> None:
    """Say what a word means that acidctl or its JSON has said, and what to do then.

    WORD is the code of a reason (few-deltas), an exit status (14), a rule of validate (V26), the code of an error
    (conflict), a state (obsolete), a term (snapshot), or the name of a directory. Without a word all are listed.
    """
