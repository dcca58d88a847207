"""`acidctl stream`: Insert JSON lines of standard input as they come."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from acidctl.cli.options import shared
from acidctl.cli.options.verb_command import verb_command
from acidctl.cli.output.console import Records, note_if_typed, put_text
from acidctl.cli.output.streams import uninterrupted
from acidctl.verbs.writing.options import StreamOptions

if TYPE_CHECKING:
    from acidctl.cli.options.verb_command import Call


@verb_command(
    "stream",
    StreamOptions,
    place=shared.one_place("TABLE"),
    source=shared.table_options,
    changes=True,
    forms=("table", "jsonl"),
)
def command(call: Call[StreamOptions]) -> int:
    """Insert JSON lines of standard input into TABLE as they come, in one Hive transaction for each interval.

    TABLE is hive:db.table. Values are taken as by `acidctl insert`. It ends with the input, or with Ctrl-C or SIGTERM,
    after it has written all whole lines that it has read. A line that cannot be written ends it with status 4 and the
    number of the line, after all lines before it have been written.

    With --offset-key it can be started again at any time, also after it was killed, with input that begins earlier:
    the transaction also records the highest offset, and lines up to it are passed over. Each transaction adds a
    directory to every partition that gets rows: run compactions beside it, as `acidctl hive initiator` and `worker` do.
    """
    from acidctl.verbs.writing.stream import stream

    note_if_typed("rows")
    screen, records = call.screen(is_plan=False), Records(call.output)
    for written in stream(call.selection, call.options, screen, sys.stdin.fileno(), uninterrupted):
        if call.output == "table":
            put_text(written.line())
        else:
            records.put(written.record())
    return 0
