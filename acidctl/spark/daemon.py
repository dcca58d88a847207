"""Start Spark's Python workers on this machine faster.

Spark puts ``pyspark.zip`` first on the workers' path.  Nothing in a zip is ever compiled ahead, so every session
compiles all of PySpark again, for two to three seconds.  When the driver runs on the same machine with the very same
installed package (see :mod:`acidctl.spark.driver.session`), this module, named by ``spark.python.daemon.module``,
takes the package from where it is installed and imports the worker's code once, before the workers are forked.
"""

from __future__ import annotations

import importlib
import re
import sys


def main() -> None:
    """Run PySpark's own daemon without the zip files on the path."""
    sys.path[:] = [entry for entry in sys.path if not re.search(r"/python/lib/(pyspark|py4j-[^/]*)\.zip$", entry)]
    # Starts no thread (it imports neither pandas nor pyarrow), so forking afterwards is safe.
    importlib.import_module("pyspark.worker")
    importlib.import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
