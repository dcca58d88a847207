"""The verbs that change rows, each a transaction of Hive's."""
