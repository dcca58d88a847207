from acidctl.api import Location as Location
from acidctl.api import migrate as migrate
from acidctl.locations import find as find
from acidctl.rows.scan.table import PartitionLocation as PartitionLocation
from acidctl.rows.scan.table import Table as Table
from acidctl.rows.scan.table import open_table as open_table
from acidctl.rows.scan.table_scan import TableScan as TableScan
from acidctl.verbs.compact_options import CompactOptions as CompactOptions
from acidctl.verbs.hive.hive import Hive as Hive
from acidctl.verbs.writing.writable_table import create as create

__all__ = [
    "CompactOptions",
    "Hive",
    "Location",
    "PartitionLocation",
    "Table",
    "TableScan",
    "__version__",
    "create",
    "find",
    "migrate",
    "open_table",
]

__version__: str
