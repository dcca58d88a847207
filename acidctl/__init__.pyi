from acidctl.rows.table import Table as Table
from acidctl.rows.table import TableLocation as TableLocation
from acidctl.rows.table import TableScan as TableScan
from acidctl.rows.table import open_table as open_table

__all__ = ["Table", "TableLocation", "TableScan", "__version__", "open_table"]

__version__: str
