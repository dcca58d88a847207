"""Which metastores there are, as ZooKeeper knows: Hive 4's servers write their address there."""

from __future__ import annotations

import logging
from contextlib import suppress

from acidctl.errors import AcidctlError, importing
from acidctl.metastore.errors import MetastoreError, Unreachable
from acidctl.metastore.settings import Address, MetastoreSettings, address_of
from acidctl.printable import printable

_MOST_SERVERS = 1000
_MOST_BYTES = 4096


def server_addresses(settings: MetastoreSettings) -> tuple[Address, ...]:
    """The servers to be asked: those of the settings, or those that ZooKeeper has now.

    Raises:
        EnvironmentProblem: the package kazoo is missing.
        Unreachable: ZooKeeper does not answer.
        MetastoreError: it knows no metastore.
    """
    if not settings.quorum:
        return settings.addresses
    with importing(f"cannot ask {settings.shown} for metastores", "pip install 'acidctl[zookeeper]'"):
        from kazoo.client import KazooClient  # noqa: PLC0415 - optional
        from kazoo.exceptions import KazooException, NoNodeError  # noqa: PLC0415 - optional
        from kazoo.handlers.threading import KazooTimeoutError  # noqa: PLC0415 - optional
    logging.getLogger("kazoo").addHandler(logging.NullHandler())  # it logs what it also raises
    client = KazooClient(settings.quorum, timeout=settings.connect_timeout, read_only=True)
    folder = "/" + settings.namespace.strip("/")
    try:
        client.start(settings.connect_timeout)
        names = sorted(client.get_children(folder))[:_MOST_SERVERS]
        found = []
        for name in names:
            with suppress(NoNodeError):  # it ended meanwhile
                found.append(client.get(f"{folder}/{name}")[0][:_MOST_BYTES])
    except NoNodeError as error:
        raise _none(settings, f"there is no {folder}") from error
    except (KazooTimeoutError, KazooException, OSError) as error:
        raise Unreachable(
            f"{settings.shown} does not answer",
            printable(str(error) or type(error).__name__),
            "check the quorum in the setting uris, and that ZooKeeper runs",
        ) from error
    finally:
        with suppress(KazooException, OSError):
            client.stop()
            client.close()
    addresses = []
    for text in found:
        with suppress(AcidctlError):
            addresses.append(address_of(text.decode("utf-8", "replace").strip(), settings))
    if not addresses:
        raise _none(settings, "no server has written its address there")
    return tuple(addresses)


def _none(settings: MetastoreSettings, why: str) -> MetastoreError:
    return MetastoreError(
        f"{settings.shown} knows no metastore",
        printable(why),
        "check the setting zookeeper-namespace, and that a metastore runs",
    )
