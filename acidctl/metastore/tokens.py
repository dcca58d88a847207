"""Which of Hadoop's delegation tokens is for a metastore."""

from __future__ import annotations

from collections.abc import Mapping

from acidctl.errors import UsageProblem
from acidctl.tokens import Token, tokens_of_job

_KIND = "HIVE_DELEGATION_TOKEN"
_NOT_OURS = "hiveserver2ClientToken"


def token_of_text(text: str) -> Token:
    """From Hadoop's URL-safe text.

    Raises:
        UsageProblem: it is none.
    """
    try:
        return Token.of_text(text)
    except ValueError as error:
        raise UsageProblem(
            "the delegation token for the metastore cannot be read",
            "it is not the text of a Hadoop token",
            "the setting token, or ACIDCTL_METASTORE_TOKEN: as get_delegation_token gives it",
        ) from error


def token_of_file(environ: Mapping[str, str], signature: str) -> Token | None:
    """The token for a metastore in the file that a cluster leaves for a job; None where there is none.

    Args:
        signature: of the service, ``hive.metastore.token.signature``; without it that of no service, else the only
            one of Hive's that is not for HiveServer2.

    Raises:
        UsageProblem: the file cannot be read.
    """
    ours = [token for token in tokens_of_job(environ) if token.kind == _KIND and token.service != _NOT_OURS]
    if signature:
        return next((token for token in ours if token.service == signature), None)
    plain = [token for token in ours if not token.service]
    return next(iter(plain or ours), None)
