from acidctl.rows.scan.table import Table as Table
from acidctl.rows.scan.table import TableLocation as TableLocation
from acidctl.rows.scan.table import TableScan as TableScan
from acidctl.rows.scan.table import open_table as open_table

__all__ = ["Table", "TableLocation", "TableScan", "__version__", "open_table"]

__version__: str
