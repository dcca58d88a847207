"""Everything at once on a real metastore, and everything that goes wrong, against a model; see its module.

PYTHONPATH=.:tests python tests/bench/stress_worker.py [--hive 3|4] [--minutes N] [--seed N] [--at DIR]
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from support.metastore.stress import stress

from acidctl.metastore.queue import find_compactions


def main() -> int:
    """From the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hive", type=int, choices=(3, 4), default=4, help="3.1.3, or 4.0.1, which it is without")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--at", type=Path, help="a folder to work in, which is kept")
    parser.add_argument("--no-hive-cleaner", action="store_true", help="no cleaner of Hive's runs beside ours")
    parser.add_argument("--no-hive-worker", action="store_true", help="no worker of Hive's runs beside ours")
    parser.add_argument("--no-restarts", action="store_true", help="the metastore is not killed")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    folder = asked.at or Path(tempfile.mkdtemp(prefix="acidctl-stress-"))
    folder.mkdir(parents=True, exist_ok=True)
    with stress(
        folder,
        asked.seed,
        asked.hive,
        hives_cleaner=not asked.no_hive_cleaner,
        hives_worker=not asked.no_hive_worker,
        restarts=not asked.no_restarts,
    ) as one:
        one.play(asked.minutes)
        print(dict(sorted(one.did.items())))
        print(Counter(entry.state for entry in find_compactions(one.metastore)))
        problems = one.problems
    if not problems and not asked.at:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(problems) if problems else "every reader saw the rows of its snapshot; nothing was left")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
