"""The user's Kerberos ticket, and what stands for it on machines that have none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from acidctl.storage.port import FileSystemSpec

_NOT_PASSED_ON = ("kerberos", "keytab", "principal")
KINIT = "get a ticket: kinit USER, or kinit -k -t KEYTAB PRINCIPAL; klist shows what there is"


def wants_kerberos(options: Mapping[str, str]) -> bool:
    """Whether the storage options ask for a Kerberos login."""
    return options.get("kerberos", "").lower() in ("true", "yes", "1") or bool(options.get("keytab"))


def ticket_problem() -> str:
    """What is wrong with this user's Kerberos ticket, as far as the machine can tell."""
    try:
        from gssapi import Credentials  # noqa: PLC0415 - optional
        from gssapi.exceptions import ExpiredCredentialsError  # noqa: PLC0415 - optional
        from gssapi.raw import GSSError  # noqa: PLC0415 - optional
    except ImportError:
        return "the server does not take the Kerberos login"
    try:
        left = Credentials(usage="initiate").lifetime
    except ExpiredCredentialsError:
        left = 0
    except GSSError:
        return "there is no Kerberos ticket"
    if left == 0:
        return "the Kerberos ticket has expired"
    return "the server does not take the Kerberos ticket"


@lru_cache(maxsize=16)
def delegated(spec: FileSystemSpec) -> FileSystemSpec:
    """The spec to send to executors: for WebHDFS with Kerberos a delegation token takes the place of the ticket.

    One token serves a process's every task.  The server ends it after its renewal interval, a day where nothing else
    is configured.  Other stores' specs are returned as they are: over ``hdfs://`` executors use the token file that
    Spark's own cluster managers give them (``HADOOP_TOKEN_FILE_LOCATION``), or a ticket or keytab of their own.

    Raises:
        AccessError: the server gives no token, or there is no ticket.
        StorageError: it cannot be reached.
    """
    options = dict(spec.options)
    if spec.protocol not in ("webhdfs", "swebhdfs") or options.get("token") or not wants_kerberos(options):
        return spec
    from acidctl.storage.hdfs.webhdfs import WebHdfsClient  # noqa: PLC0415 - with requests: only for WebHDFS

    options["token"] = WebHdfsClient(spec).delegation_token()
    kept = {key: value for key, value in options.items() if key not in _NOT_PASSED_ON}
    return FileSystemSpec(spec.protocol, tuple(sorted(kept.items())), spec.authority)
