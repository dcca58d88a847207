"""The rules of Hive ACID, pure: values in, values out, no I/O."""
