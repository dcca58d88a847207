"""What each setting of the metastore means, for the table of docs/how-to/metastore.md."""

from __future__ import annotations

MEANINGS: dict[str, str] = {
    "uris": "addresses: `thrift://host:9083,...`, `http://host:port/metastore`; of ZooKeeper `host:2181`",
    "selection": "`RANDOM`, or `SEQUENTIAL` to keep the order of the addresses",
    "discovery": "`zookeeper`: get the servers from ZooKeeper",
    "zookeeper-namespace": "node below which the servers register; default `hive_metastore`",
    "zookeeper-port": "port of addresses without a port; default 2181",
    "auth": "login: `none`, `kerberos`, `token`, `plain` or `jwt`; default: from the other settings",
    "sasl": "`true`: Kerberos, or a token if there is a token",
    "principal": "principal of the server: `hive/_HOST@REALM`",
    "protection": "after a login: `authentication`, `integrity`, `privacy`, or several, the best first",
    "keytab": "keytab to get a ticket from, if there is no ticket",
    "client-principal": "principal for the keytab",
    "user": "user name if the login gives none; else `HADOOP_USER_NAME`, or the user of the system",
    "password": "password for `auth=plain`; else `ACIDCTL_METASTORE_PASSWORD`",
    "token": "a delegation token or a JWT; else `ACIDCTL_METASTORE_TOKEN`, the token file, `HMS_JWT`",
    "plain-without-tls": "`true`: send a password or token although the connection is not encrypted",
    "tls": "`true`: encrypt, and check the server's certificate",
    "ca": "CA certificates (PEM); default: the system's",
    "certificate": "client certificate (PEM), if the server requires it",
    "key": "key of the client certificate (PEM without a password)",
    "framed": "`true` if the server uses framed transport",
    "compact": "`true` if the server uses the compact protocol",
    "transport": "`http`, if the address does not begin with it",
    "http-path": "path on the server; default `metastore`",
    "headers": "headers of every HTTP request: `name=value,name=value`",
    "capabilities": "client capabilities for a metastore that translates tables; default: no translation",
    "processor": "client name that goes with the capabilities; default `acidctl@host`",
    "connect-timeout": "timeout to connect and log in; default 30",
    "timeout": "timeout for each answer; default 300",
}
"""By the names of :data:`acidctl.metastore.settings.NAMES`, which a test compares."""
