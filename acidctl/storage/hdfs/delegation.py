"""Give processes on other machines, which have no Kerberos ticket, access to the same store."""

from __future__ import annotations

from functools import lru_cache

from acidctl.storage.hdfs.kerberos import wants_kerberos, web_token
from acidctl.storage.port import FileSystemSpec

_NOT_PASSED_ON = ("kerberos", "keytab", "principal")


@lru_cache(maxsize=16)
def delegated(spec: FileSystemSpec) -> FileSystemSpec:
    """Return the spec to send to executors: for WebHDFS with Kerberos it holds a delegation token instead of a ticket.

    All tasks of a process share one token, which the server ends after its renewal interval (default: a day).  Specs
    of other stores are returned unchanged: over ``hdfs://`` executors use the tokens that Spark fetches for them
    (:func:`acidctl.storage.hdfs.kerberos.rpc_address`), or a ticket or keytab of their own.

    Raises:
        AccessError: the server gives no token, or there is no ticket.
        StorageError: the server cannot be reached.
    """
    options = dict(spec.options)
    if spec.protocol not in ("webhdfs", "swebhdfs") or options.get("token") or not wants_kerberos(options):
        return spec
    from acidctl.storage.hdfs.webhdfs import WebHdfsClient  # noqa: PLC0415 - with requests: only for WebHDFS

    options["token"] = web_token(spec) or WebHdfsClient(spec).delegation_token()
    kept = {key: value for key, value in options.items() if key not in _NOT_PASSED_ON}
    return FileSystemSpec(spec.protocol, tuple(sorted(kept.items())), spec.authority)
