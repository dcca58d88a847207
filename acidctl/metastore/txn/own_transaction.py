"""A transaction of acidctl, which is ended in any case, even if the answer to its opening was lost.

Hive's list of transactions shows only the user and the host of a client. Therefore acidctl adds its name to the host,
``host7/acidctl-4711-1f3a9c20``: people see it in SHOW TRANSACTIONS, and acidctl finds a transaction without its id.
"""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress
from dataclasses import replace

from acidctl.base.errors import AcidctlError
from acidctl.metastore import client, interface
from acidctl.metastore.activity import open_txns_info
from acidctl.metastore.client import Metastore, retry_until
from acidctl.metastore.errors import LostTransaction, MetastoreError

_MOST_HOST = 128
"""Characters that every version of the metastore's tables takes."""


class OwnTransaction:
    """A transaction that :meth:`open` opens, and :meth:`end` ends unless :meth:`forget` was called.

    Attributes:
        id: 0 before it is opened.
        failure: the error of its end; None if it was ended.
        agent: name of the client in its locks: ``acidctl-PID-`` and a random number.
        host: name of this machine, followed by `agent`.
    """

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._is_asked_for = self._has_ended = False
        self.id = 0
        self.failure: AcidctlError | None = None
        self.agent = f"acidctl-{os.getpid()}-{secrets.token_hex(4)}"
        self.host = f"{socket.gethostname()[: _MOST_HOST - 1 - len(self.agent)]}/{self.agent}"

    def open(self, txn_type: interface.TxnType = interface.TxnType.READ_ONLY) -> int:
        """Open the transaction; :meth:`end` must follow, even if this fails.

        Args:
            txn_type: ignored before Hive 4.
        """
        metastore = self._metastore
        sent_type = txn_type if metastore.features.txn_types else None
        request = interface.OpenTxnRequest(1, metastore.settings.user_name, self.host, self.agent, sent_type)
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
        """Note that the caller has ended the transaction."""
        self._has_ended = True

    def end(self, *, commit: bool = True) -> None:
        """End the transaction; without effect if it has ended. If the server fails, the transaction times out.

        A transaction that only read is committed, because the server would keep a record of an aborted one.
        """
        if self._has_ended or not self._is_asked_for:
            return
        try:
            self._end(commit)
        except KeyboardInterrupt:  # try again, as nothing else would end it
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
        except LostTransaction:  # it has ended, or the id was never ours
            self._end_unknown()
            return
        except AcidctlError as error:
            self.failure = error
        # The connection may just have been lost, and a second abort does no harm.
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
        """End a transaction whose id is unknown or wrong: the server may have opened it, or may open it only now."""
        settings = self._metastore.settings
        patience = min(client.PATIENCE, settings.timeout)
        other = self._metastore.another(
            replace(settings, timeout=patience, connect_timeout=min(patience, settings.connect_timeout)), rounds=1
        )

        def abort() -> bool:
            txns = open_txns_info(other).txns
            ours = [txn.id for txn in txns if txn.host == self.host and txn.state == interface.TxnState.OPEN]
            for txn in ours:
                other.call(interface.ABORT_TXN, interface.AbortTxnRequest(txn))
            return bool(ours or self.id)

        with suppress(AcidctlError):
            retry_until(abort, patience)
        other.close()
