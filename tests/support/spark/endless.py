"""A run that does not end by itself: test_processes.py ends it from outside."""

from __future__ import annotations

import os
import signal
import sys

from acidctl.spark.driver.session import start_session
from acidctl.spark.driver.session_plan import SparkOptions
from acidctl.spark.jobs import run_tasks
from support.spark.spark_toys import Toy, play


def main() -> int:
    """Run two endless tasks; 130 when interrupted, as a command line would."""
    # A shell may have started this with interrupts ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with start_session(SparkOptions(master="local[2]")) as session:
            list(run_tasks([Toy("sleep", 600, sys.argv[1])] * 2, play, session))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    os.write(1, b"ready\n")
    sys.exit(main())
