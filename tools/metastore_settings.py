"""What each setting of the metastore means, for the table of docs/how-to/metastore.md."""

from __future__ import annotations

MEANINGS: dict[str, str] = {
    "uris": "addresses: `thrift://host:9083,...`, `http://host:port/metastore`; of ZooKeeper `host:2181`",
    "selection": "`RANDOM`, or `SEQUENTIAL` for their order",
    "discovery": "`zookeeper`: it knows the servers",
    "zookeeper-namespace": "where it knows them; `hive_metastore`",
    "zookeeper-port": "of addresses without one; 2181",
    "auth": "how to log in: `none`, `kerberos`, `token`, `plain` or `jwt`; without it as the other settings suggest",
    "sasl": "`true`: Kerberos, or a token where there is one",
    "principal": "of the server: `hive/_HOST@REALM`",
    "protection": "of messages after a login: `authentication`, `integrity`, `privacy`, or several, the best first",
    "keytab": "to get a ticket from, where there is none",
    "client-principal": "of that ticket",
    "user": "who one is, where no login says it; else `HADOOP_USER_NAME`, or the user of the system",
    "password": "for `auth=plain`; else `ACIDCTL_METASTORE_PASSWORD`",
    "token": "a delegation token or a JWT; else `ACIDCTL_METASTORE_TOKEN`, the token file, `HMS_JWT`",
    "plain-without-tls": "`true`: send a password or token although the connection is not encrypted",
    "tls": "`true`: encrypt, and check the server's certificate",
    "ca": "PEM file of who signed it; without it those that the system trusts",
    "certificate": "PEM file of one's own, where the server asks",
    "key": "its key, a PEM file without a password",
    "framed": "`true` where the server has framed transport",
    "compact": "`true` where it has the compact protocol",
    "transport": "`http`, where the address does not say it",
    "http-path": "of the server; `metastore`",
    "headers": "of every HTTP request: `name=value,name=value`",
    "connect-timeout": "to connect and log in; 30",
    "timeout": "for each answer; 300",
    "capabilities": "what a metastore that translates tables is told; without, it translates none",
    "processor": "the name that goes with them; `acidctl@host`",
}
"""By the names of :data:`acidctl.metastore.settings.NAMES`, which a test compares."""
