"""Servers that tests start: HDFS from pyspark's jars, Kerberos."""
