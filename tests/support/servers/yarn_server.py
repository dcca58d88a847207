"""YARN 3.4: a ResourceManager and NodeManagers in one process, with the queues ``default`` and ``etl``.

python -m support.servers.yarn_server DIRECTORY   # prints the folder for HADOOP_CONF_DIR; ends with the input
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pyspark

from support.servers.hdfs_server import ServerUnavailable, find_java, free_ports
from support.servers.jars import fetch
from support.servers.jvm import Process, command, write_site
from support.servers.kdc import REALM
from support.servers.kerberos_server import KerberosHdfsServer

SMALL = (
    *("spark.executor.memory=512m", "spark.executor.memoryOverhead=512m", "spark.yarn.am.memory=512m"),
    "spark.yarn.am.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    f"spark.yarn.jars=local:{Path(pyspark.__file__).parent}/jars/*",  # else all 400 MB are sent to each application
)
"""Settings of Spark for executors of this machine."""

_LOG4J = """log4j.rootLogger=WARN,err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1}: %m%n
"""


class YarnServer:
    """Started by the constructor, ended by :meth:`stop`.

    Args:
        directory: for logs, and the nodes' files.
        hdfs: the file system of the cluster, and its Kerberos; without, the local disk, and nobody logs in.

    Attributes:
        conf: the folder for ``HADOOP_CONF_DIR``.

    Raises:
        ServerUnavailable: its jars or a Java cannot be had, or it does not come up.
    """

    NODES = 2

    def __init__(self, directory: Path, hdfs: KerberosHdfsServer | None = None) -> None:
        self.conf = directory / "conf"
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        folder = fetch("hadoop3")
        yarn = _properties(hdfs.kdc.jvm if hdfs else [])
        if hdfs:
            yarn |= _secure(hdfs, directory / "yarn.keytab")
            hdfs.write_client_conf(self.conf, {"hadoop.tmp.dir": f"{directory}/tmp"})
        else:
            write_site(self.conf / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": f"{directory}/tmp"})
        write_site(self.conf / "yarn-site.xml", yarn)
        write_site(self.conf / "capacity-scheduler.xml", _QUEUES)
        (self.conf / "log4j.properties").write_text(_LOG4J)
        path = [self.conf, folder / "classes", folder / "lib/*"]
        options = hdfs.kdc.jvm if hdfs else []
        arguments = command(path, "Yarn", str(directory), str(self.NODES), heap="512m", home=directory, options=options)
        self._process = Process(arguments, directory / "yarn.log", pipes=True)
        try:
            assert self._process.popen.stdout
            if self._process.popen.stdout.readline() != "up\n":
                raise ServerUnavailable(f"YARN does not come up: {self._process.said()}")
        except BaseException:
            self.stop()
            raise

    def applications(self) -> list[list[str]]:
        """Name, queue and final status of each that there was."""
        assert self._process.popen.stdin
        assert self._process.popen.stdout
        self._process.popen.stdin.write("\n")
        self._process.popen.stdin.flush()
        lines = iter(self._process.popen.stdout.readline, "\n")
        return [line.rstrip("\n").split("\t") for line in lines]

    def processes(self, words: str) -> list[int]:
        """The processes below it in whose command line `words` stand: containers, their shells aside."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(self._directory) in line and words in line and "java" in line.partition(" ")[0]:
                    found.append(int(folder.name))
        return found

    def stop(self) -> None:
        """End it; its containers end with their applications."""
        self._process.stop()


def _properties(options: list[str]) -> dict[str, str]:
    """With `options` for every Java that a node starts."""
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    ports = free_ports(len(names))
    manager = {f"yarn.resourcemanager.{name}": f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)}
    return {
        **manager,
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.resourcemanager.scheduler.class": (
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
        ),
        "yarn.scheduler.minimum-allocation-mb": "64",
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.address": "127.0.0.1:0",
        "yarn.nodemanager.localizer.address": "127.0.0.1:0",
        "yarn.nodemanager.webapp.address": "127.0.0.1:0",
        "yarn.nodemanager.collector-service.address": "127.0.0.1:0",
        "yarn.nodemanager.resource.memory-mb": "4096",
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.delete.debug-delay-sec": "600",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR",
        "yarn.nodemanager.admin-env": ",".join(
            [f"JAVA_HOME={Path(find_java()).resolve().parents[1]}", *(f"JAVA_TOOL_OPTIONS={one}" for one in options)]
        ),
        "yarn.am.liveness-monitor.expiry-interval-ms": "20000",
        "yarn.dispatcher.exit-on-error": "false",
    }


def _secure(hdfs: KerberosHdfsServer, keytab: Path) -> dict[str, str]:
    """One principal for all: they log in once in a process."""
    hdfs.kdc.add_keys(keytab, "yarn/localhost")
    login = {"principal": f"yarn/localhost@{REALM}", "keytab": str(keytab)}
    daemons = ("resourcemanager", "nodemanager")
    return {f"yarn.{daemon}.{name}": value for daemon in daemons for name, value in login.items()} | {
        "yarn.acl.enable": "true",
        "yarn.resourcemanager.webapp.delegation-token-auth-filter.enabled": "false",
    }


_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default,etl",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.default.maximum-capacity": "100",
    "yarn.scheduler.capacity.root.etl.capacity": "50",
    "yarn.scheduler.capacity.root.etl.maximum-capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}


if __name__ == "__main__":
    server = YarnServer(Path(sys.argv[1]).resolve())
    try:
        print(server.conf, flush=True)
        sys.stdin.read()
    finally:
        server.stop()
