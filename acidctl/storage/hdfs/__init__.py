"""Access HDFS over HTTP or by its own protocol, with its configuration, errors and Kerberos."""
