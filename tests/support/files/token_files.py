"""Files of delegation tokens, as Hadoop 3.4 wrote them (``hadoop dtutil get``) for an HDFS of tests that is gone.

Each has one token twice: with a service of no meaning, ``x``, and with that of the NameNode.
"""

from __future__ import annotations

from base64 import b64decode

SERVICE = "127.0.0.1:42659"
OLD_FORMAT = b64decode(
    "SERUUwACAXgnAA9yb290QFRFU1QuTE9DQUwEeWFybgCKAaIRp/oDigGiNbR+AwoCFCq1d0ez+isYPr1wIANE1RlvJcW/FUhERlNfREVMRUdBVElPTl9U"
    "T0tFTgF4DzEyNy4wLjAuMTo0MjY1OScAD3Jvb3RAVEVTVC5MT0NBTAR5YXJuAIoBohGn+gOKAaI1tH4DCgIUKrV3R7P6Kxg+vXAgA0TVGW8lxb8VSERG"
    "U19ERUxFR0FUSU9OX1RPS0VODzEyNy4wLjAuMTo0MjY1OQA="
)
NEW_FORMAT = b64decode(
    "SERUUwHcAQpeCgF4ElkKJwAPcm9vdEBURVNULkxPQ0FMBHlhcm4AigGiEagK1YoBojW0jtULAhIUrzVjfbkeSfsAj34zIYDQfW0ynyUaFUhERlNfREVM"
    "RUdBVElPTl9UT0tFTiIBeAp6Cg8xMjcuMC4wLjE6NDI2NTkSZwonAA9yb290QFRFU1QuTE9DQUwEeWFybgCKAaIRqArVigGiNbSO1QsCEhSvNWN9uR5J"
    "+wCPfjMhgNB9bTKfJRoVSERGU19ERUxFR0FUSU9OX1RPS0VOIg8xMjcuMC4wLjE6NDI2NTk="
)


def with_service(service: str, kind: str = "HDFS_DELEGATION_TOKEN") -> bytes:
    """The first file with another service, and perhaps of another kind, of the NameNode's token."""
    head, sep, _ = OLD_FORMAT.rpartition(b"\x15HDFS_DELEGATION_TOKEN")
    assert sep
    return head + bytes([len(kind)]) + kind.encode() + bytes([len(service)]) + service.encode() + b"\0"
