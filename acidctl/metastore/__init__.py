"""What Hive's metastore says: its tables, transactions, locks and compactions, asked over Thrift.

Methods and fields are facts of the interface of Hive 2.3 to 4.x; the definitions here are acidctl's own.
Only this package imports thrift.
"""
