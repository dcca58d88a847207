"""HDFS: over HTTP, or by its own protocol; what its configuration, its errors and Kerberos say."""
