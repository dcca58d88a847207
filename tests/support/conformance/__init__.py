"""Small tables, each named after a rule or a public report, and what both Hives, Trino and acidctl read of them.

python -m support.conformance            # in tests/: start the servers, read all tables again, write the results
python -m support.conformance --ours     # without a server: only acidctl's own column
"""
