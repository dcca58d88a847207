"""Hive 4 hangs up on who asks for all transactions while numbers were left out; a second later it answers."""

from __future__ import annotations

import pytest
from support.metastore.fake_hive import FakeHive

from acidctl.metastore import activity
from acidctl.metastore.activity import find_transactions
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import Unreachable
from acidctl.metastore.settings import find_settings


@pytest.mark.parametrize("rounds", [1, 3])
def test_it_is_asked_once_more(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    monkeypatch.setattr(activity, "_GAP", 0.01)
    with FakeHive(4) as fake:
        txn = fake.begin()
        settings = find_settings({"uris": fake.address}, {})
        assert settings
        fake.fault("get_open_txns_info", "lost", rounds)
        assert [one.id for one in find_transactions(Metastore(settings, rounds=rounds)).open] == [txn]
        fake.fault("get_open_txns_info", "lost", 2 * rounds)
        with pytest.raises(Unreachable):
            find_transactions(Metastore(settings, rounds=rounds))
