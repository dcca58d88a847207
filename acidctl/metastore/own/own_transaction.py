"""A transaction of acidctl's own: opened, and ended whatever happens, also where the answer to its opening was lost.

No version of Hive tells in its list of transactions what their clients said of themselves, only user and host. So the
host says it, ``host7/acidctl-4711-1f3a9c20``: in SHOW TRANSACTIONS people see whose it is, and acidctl finds its own.
"""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress
from dataclasses import replace

from acidctl.errors import AcidctlError
from acidctl.metastore import client, interface
from acidctl.metastore.activity import open_txns_info
from acidctl.metastore.client import Metastore, retry_until
from acidctl.metastore.errors import LostTransaction, MetastoreError

_MOST_HOST = 128
"""Characters that every version of the metastore's tables takes."""


class OwnTransaction:
    """Opened by :meth:`open`, ended by :meth:`end`, or by who says so with :meth:`forget`.

    Args:
        metastore: what it is opened and ended by.

    Attributes:
        id: 0 before it is opened.
        failure: what went wrong when it was ended; None where nothing did.
        agent: what its locks say of their client: ``acidctl-PID-`` and a number by chance.
        host: the same behind the name of this machine.
    """

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._is_asked_for = self._has_ended = False
        self.id = 0
        self.failure: AcidctlError | None = None
        self.agent = f"acidctl-{os.getpid()}-{secrets.token_hex(4)}"
        self.host = f"{socket.gethostname()[: _MOST_HOST - 1 - len(self.agent)]}/{self.agent}"

    def open(self, txn_type: interface.TxnType = interface.TxnType.READ_ONLY) -> int:
        """Open it; call :meth:`end` after that, whether it failed or not.

        Args:
            txn_type: where the server knows types.

        Raises:
            MetastoreError: the metastore cannot be reached, or failed.
        """
        metastore = self._metastore
        known = txn_type if metastore.features.txn_types else None
        request = interface.OpenTxnRequest(1, metastore.settings.user_name, self.host, self.agent, known)
        metastore.connection()
        self._is_asked_for = True
        ids = metastore.call(interface.OPEN_TXNS, request).txn_ids
        if len(ids) != 1 or ids[0] < 1:
            raise MetastoreError(
                f"the metastore {metastore.shown} opened no transaction",
                f"one was asked for, and it gave {len(ids)} ids",
                "see the metastore's log",
            )
        self.id = ids[0]
        return self.id

    def forget(self) -> None:
        """It was ended by other means."""
        self._has_ended = True

    def end(self, *, commit: bool = True) -> None:
        """End it: what was only read is committed, as an aborted transaction would be remembered.

        Where that goes wrong, too, the server's time-out does it. Once it has ended nothing happens any more.
        """
        if self._has_ended or not self._is_asked_for:
            return
        try:
            self._end(commit)
        except KeyboardInterrupt:  # once more: nobody else knows of it
            self._end(commit)
            raise
        finally:
            self._has_ended = True

    def _end(self, commit: bool) -> None:
        if not self.id:
            self._end_unknown()
            return
        try:
            if commit:
                self._metastore.call(interface.COMMIT_TXN, interface.CommitTxnRequest(self.id))
                return
        except LostTransaction:  # somebody has ended it, or it was never ours
            self._end_unknown()
            return
        except AcidctlError as error:
            self.failure = error
        # It is our own, and may be aborted as often as one likes: the connection may just have been lost.
        for _ in range(2):
            try:
                self._metastore.call(interface.ABORT_TXN, interface.AbortTxnRequest(self.id))
            except LostTransaction:
                self._end_unknown()
                return
            except AcidctlError as error:
                self.failure = error
            else:
                return

    def _end_unknown(self) -> None:
        """It may have been opened although its id never came, or another one did; or it is only opened now."""
        settings = self._metastore.settings
        patience = min(client.PATIENCE, settings.timeout)
        other = self._metastore.another(
            replace(settings, timeout=patience, connect_timeout=min(patience, settings.connect_timeout)), rounds=1
        )

        def look() -> bool:
            known = open_txns_info(other).txns
            ours = [txn.id for txn in known if txn.host == self.host and txn.state == interface.TxnState.OPEN]
            for txn in ours:
                other.call(interface.ABORT_TXN, interface.AbortTxnRequest(txn))
            return bool(ours or self.id)

        with suppress(AcidctlError):
            retry_until(look, patience)
        other.close()
