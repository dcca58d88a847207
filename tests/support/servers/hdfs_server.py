"""A real one-node HDFS (NameNode, DataNode, WebHDFS) on free loopback ports, of Hadoop 2.7 or 3.4.

The jars of 3.4 come from Maven (see jars.py).  Those of 2.7 come from PyPI: the source distribution of PySpark 2.4.8
bundles Hadoop 2.7.3.  Four Jersey 1 jars, which its WebHDFS needs, come from Debian packages.  Both are put into a
cache folder once (220 MB to download, 34 MB kept); a start then takes some seconds.  Needs java (8 or later), pip, and
for the first time apt-get and dpkg-deb.  User `root` is the superuser; permissions are enforced for all others.

    python -m support.servers.hdfs_server 3 DIRECTORY  # start one, print its address, stop at the end of the input
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

_PYSPARK = "2.4.8"
_HADOOP = "2.7.3"
_DEBIAN = ("core-java", "server-java", "servlet-java", "json-java")
_JARS = """
activation aopalliance-1 commons-beanutils commons-cli commons-codec commons-collections
commons-configuration-1 commons-digester commons-httpclient commons-io commons-lang-2 commons-logging
commons-math3 commons-net curator-client curator-framework curator-recipes guava-14 hadoop-annotations
hadoop-auth hadoop-common-2 hadoop-hdfs-2 htrace-core httpclient httpcore jackson-core-asl
jackson-mapper-asl javax.servlet-api jaxb-api jetty-6 jetty-util-6 jsp-api jsr305 leveldbjni-all log4j-1
netty-3 netty-all protobuf-java-2.5 slf4j-api slf4j-log4j12 xercesImpl xmlenc zookeeper
"""
_OPENS = (
    *("java.base/java.lang", "java.base/java.util", "java.base/java.net", "java.base/java.nio"),
    *("java.base/sun.nio.ch", "java.base/sun.net.dns", "java.base/sun.net.util"),
    *("java.security.jgss/sun.security.krb5", "java.security.jgss/sun.security.jgss"),
)
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_TOOLS = "org.apache.hadoop.hdfs.tools"
_HA_ADMIN = f"{_TOOLS}.DFSHAAdmin"
_ADMIN = f"{_TOOLS}.DFSAdmin"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_FAILOVER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_SERVLETS = '<web-app version="2.4" xmlns="http://java.sun.com/xml/ns/j2ee"></web-app>'
_LOG4J = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


class ServerUnavailable(Exception):
    """Java, the packages or the network cannot be had, or the server does not come up; the text says which."""


class HdfsServer:
    """Started by the constructor, ended by :meth:`stop`.

    Args:
        hadoop: 2 or 3.
        timeout: seconds that it may take to come up.

    Attributes:
        hadoop: as given.
        authority: ``127.0.0.1:PORT`` of the NameNode's WebHDFS.
        rpc_authority: ``127.0.0.1:PORT`` of its own protocol.
        rpc: ``hdfs://127.0.0.1:PORT``.
    """

    HEAP = "256m"
    """The most memory of each process."""

    def __init__(self, directory: Path, timeout: float = 90, hadoop: int = 2) -> None:
        self.hadoop = hadoop
        self._directory = directory
        self._java = find_java()
        self._jvm: list[str] = []
        self._library = _fetch_jars() if hadoop == 2 else _fetch_jars_of_3()
        self._processes: list[subprocess.Popen[bytes]] = []
        ports = free_ports(5)
        self.authority = f"127.0.0.1:{ports[1]}"
        self.rpc_authority = f"127.0.0.1:{ports[0]}"
        self.rpc = f"hdfs://{self.rpc_authority}"
        self._configure(ports)
        try:
            self._start(timeout)
        except BaseException:
            self.stop()
            raise

    def _start(self, timeout: float) -> None:
        self.tool(_NAME_NODE, "-format", "-force", "-nonInteractive")
        self._launch_both(timeout)

    def _launch_both(self, timeout: float) -> None:
        self._launch("namenode", _NAME_NODE)
        self._launch("datanode", _DATA_NODE)
        self._wait_for(lambda: self._live() >= 1, timeout)

    def _live(self) -> int:
        """How many DataNodes there are."""
        return _live_data_nodes(self.authority)

    def stop(self) -> None:
        """End the processes that were started, and only those."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._processes:
                if process.poll() is None:
                    process.send_signal(number)
            for process in self._processes:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    continue

    def admin(self, *arguments: str) -> str:
        """`hdfs dfsadmin`."""
        return self.tool(_ADMIN, *arguments)

    def _configure(self, ports: list[int]) -> None:
        address = [f"127.0.0.1:{port}" for port in ports]
        name_node = {"dfs.namenode.rpc-address": address[0], "dfs.namenode.http-address": address[1]}
        self._write_conf("conf", self.rpc, ports[2:], name_node)

    def _write_conf(
        self, conf: str, default_fs: str, ports: list[int], more: dict[str, str], core: dict[str, str] | None = None
    ) -> None:
        """One process's configuration.

        Args:
            ports: three for the DataNode.
            more: for hdfs-site.xml.
            core: for core-site.xml.
        """
        folders = ("log", "webapps/hdfs/WEB-INF", "webapps/datanode/WEB-INF", "webapps/static/WEB-INF")
        for name in (conf, *folders):
            (self._directory / name).mkdir(parents=True, exist_ok=True)
        for web in self._directory.glob("webapps/*/WEB-INF"):  # the servers insist on these folders
            (web / "web.xml").write_text(_SERVLETS)
        address = [f"127.0.0.1:{port}" for port in ports]
        core = {
            **(core or {}),
            "fs.defaultFS": default_fs,
            "hadoop.tmp.dir": str(self._directory / "data"),
            "hadoop.http.staticuser.user": "nobody",
        }
        hdfs = {
            "dfs.datanode.address": address[0],
            "dfs.datanode.http.address": address[1],
            "dfs.datanode.ipc.address": address[2],
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.replication": "1",
            "dfs.permissions.enabled": "true",
            "dfs.webhdfs.enabled": "true",
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.fs-limits.min-block-size": "0",
            "dfs.namenode.handler.count": "4",
            "dfs.datanode.du.reserved": "0",
            "dfs.heartbeat.interval": "1",
            **more,
        }
        for name, properties in (("core-site.xml", core), ("hdfs-site.xml", hdfs)):
            body = "".join(
                f"<property><name>{key}</name><value>{escape(value)}</value></property>\n"
                for key, value in properties.items()
            )
            (self._directory / conf / name).write_text(f"<configuration>\n{body}</configuration>\n")
        (self._directory / conf / "log4j.properties").write_text(_LOG4J)

    def _command(self, main: str, *arguments: str, conf: str) -> list[str]:
        version = subprocess.run([self._java, "-version"], capture_output=True, text=True, check=False).stderr
        opens = [] if '"1.8.' in version else [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS]
        classes = self._library.parent / "classes"
        class_path = [self._directory / conf, self._directory, classes, self._library / "*"]
        return [
            *(self._java, f"-Xmx{self.HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-Djava.net.preferIPv4Stack=true", f"-Dhadoop.log.dir={self._directory / 'log'}", *self._jvm, *opens),
            *("-cp", os.pathsep.join(str(path) for path in class_path), main, *arguments),
        ]

    def tool(self, main: str, *arguments: str, conf: str = "conf") -> str:
        """Run one of Hadoop's commands to its end."""
        command = self._command(main, *arguments, conf=conf)
        ended = subprocess.run(command, env=self._environment(), capture_output=True, text=True, check=False)
        if ended.returncode:
            raise ServerUnavailable(f"{main} {' '.join(arguments)}: {ended.stdout[-500:]} {ended.stderr[-500:]}")
        return ended.stdout

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "HADOOP_USER_NAME": "root"}

    def _launch(self, name: str, main: str, *arguments: str, conf: str = "conf") -> subprocess.Popen[bytes]:
        return self._start_process(name, self._command(main, *arguments, conf=conf), self._environment())

    def _start_process(self, name: str, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self._directory / "log" / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self._directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _wait_for(self, is_up: Callable[[], bool], timeout: float) -> None:
        end = time.monotonic() + timeout
        while not is_up():
            if any(process.poll() is not None for process in self._processes):
                raise ServerUnavailable(f"HDFS ended: {self._log_tail('namenode')} {self._log_tail('datanode')}")
            if time.monotonic() > end:
                raise ServerUnavailable(f"HDFS is not up after {timeout:.0f} s: see {self._directory}/log")
            time.sleep(0.1)

    def _log_tail(self, name: str) -> str:
        path = self._directory / "log" / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return lines[-1] if lines else "(no log)"


class ZonesHdfsServer(HdfsServer):
    """HDFS 3 (`hadoop=3`) with three DataNodes, so that files can be erasure-coded, and a key for encryption zones.

    Everything is done by `root`; the key lies in a file.
    """

    KEY = "tests"
    POLICY = "XOR-2-1-1024k"

    def _write_conf(
        self, conf: str, default_fs: str, ports: list[int], more: dict[str, str], core: dict[str, str] | None = None
    ) -> None:
        keys = {"hadoop.security.key.provider.path": f"jceks://file{self._directory}/keys.jceks"}
        super()._write_conf(conf, default_fs, ports, more, {**(core or {}), **keys})

    def _start(self, timeout: float) -> None:
        self.tool("org.apache.hadoop.crypto.key.KeyShell", "create", self.KEY)
        super()._start(timeout)
        self.tool(f"{_TOOLS}.ECAdmin", "-enablePolicy", "-policy", self.POLICY)

    def _launch_both(self, timeout: float) -> None:
        self._launch("namenode", _NAME_NODE)
        self._launch("datanode", "DataNodes", str(self._directory), "3")
        self._wait_for(lambda: _live_data_nodes(self.authority) >= 3, timeout)

    def encrypt(self, path: str) -> None:
        """Make an empty directory an encryption zone, with a trash of its own."""
        self.tool(f"{_TOOLS}.CryptoAdmin", "-createZone", "-keyName", self.KEY, "-path", path)

    def erasure_code(self, path: str) -> None:
        """Files that are written below a directory from now on are erasure-coded."""
        self.tool(f"{_TOOLS}.ECAdmin", "-setPolicy", "-path", path, "-policy", self.POLICY)


class HaHdfsServer(HdfsServer):
    """Two NameNodes of one nameservice, which share their edits in a folder, and a DataNode.  The first is active.

    Attributes:
        conf: the folder for HADOOP_CONF_DIR.
        authority: both NameNodes' WebHDFS.
    """

    NAMESERVICE = "acid"

    def _configure(self, ports: list[int]) -> None:
        ports = free_ports(7)
        self.conf = self._directory / "nn1"
        self._web = [f"127.0.0.1:{port}" for port in ports[2:4]]
        self.authority = ",".join(self._web)
        service = self.NAMESERVICE
        shared = {
            "dfs.nameservices": service,
            f"dfs.ha.namenodes.{service}": "nn1,nn2",
            "dfs.namenode.shared.edits.dir": f"file://{self._directory}/edits",
            f"dfs.client.failover.proxy.provider.{service}": _FAILOVER,
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.ha.tail-edits.period": "1",
        }
        for index, name in enumerate(("nn1", "nn2")):
            shared[f"dfs.namenode.rpc-address.{service}.{name}"] = f"127.0.0.1:{ports[index]}"
            shared[f"dfs.namenode.http-address.{service}.{name}"] = self._web[index]
        for name in ("nn1", "nn2"):
            own = {"dfs.ha.namenode.id": name, "dfs.namenode.name.dir": f"file://{self._directory}/{name}-name"}
            self._write_conf(name, f"hdfs://{service}", ports[4:], {**shared, **own})

    def _start(self, timeout: float) -> None:
        self.tool(_NAME_NODE, "-format", "-force", "-nonInteractive", conf="nn1")
        self._launch("namenode", _NAME_NODE, conf="nn1")
        self._launch("datanode", _DATA_NODE, conf="nn1")
        self._wait_for(lambda: _live_data_nodes(self._web[0]) >= 1, timeout)
        self.tool(_NAME_NODE, "-bootstrapStandby", "-nonInteractive", "-force", conf="nn2")
        self._launch("standby", _NAME_NODE, conf="nn2")
        self._wait_for(lambda: _live_data_nodes(self._web[1]) >= 1, timeout)
        self.tool(_HA_ADMIN, "-transitionToActive", "nn1", conf="nn1")

    def fail_over(self, names: tuple[str, str] = ("nn1", "nn2")) -> None:
        """The active NameNode, the first of `names`, goes on standby, the other one becomes active."""
        self.tool(_HA_ADMIN, "-transitionToStandby", names[0], conf="nn1")
        self.tool(_HA_ADMIN, "-transitionToActive", names[1], conf="nn1")


def _live_data_nodes(authority: str) -> int:
    """Of a NameNode out of safe mode; 0 when it does not answer."""
    url = f"http://{authority}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy
    try:
        with opener.open(url, timeout=2) as answer:
            beans = json.load(answer)["beans"]
    except (OSError, ValueError, KeyError):
        return 0
    if not beans or beans[0].get("FSState") != "Operational":
        return 0
    return int(beans[0].get("NumLiveDataNodes", 0))


def find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        raise ServerUnavailable("no java: set JAVA_HOME or put java on PATH")
    return java


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def cache_folder() -> Path:
    """Where packages are kept for the next time."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hdfs-server"
    cache = Path(os.environ.get("HDFS_SERVER_CACHE") or default)
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _fetch_jars_of_3() -> Path:
    from support.servers.jars import fetch  # which needs this module

    return fetch("hadoop3") / "lib"


def _fetch_jars() -> Path:
    """The folder of the server's jars, filled at the first use."""
    cache = cache_folder()
    library = cache / f"lib-{_HADOOP}"
    if (library / ".complete").exists():
        return library
    with tempfile.TemporaryDirectory(dir=cache) as name:
        work = Path(name)
        work.chmod(0o755)  # apt-get gives its privileges up and must still see the folder
        jars = work / "lib"
        jars.mkdir()
        try:
            _unpack_pyspark(work, jars)
            _unpack_debian(work, jars)
        except (OSError, subprocess.CalledProcessError, tarfile.TarError) as error:
            raise ServerUnavailable(f"the packages of Hadoop cannot be had: {error}") from error
        (jars / ".complete").touch()
        if not library.exists():
            jars.rename(library)
    return library


def _unpack_pyspark(work: Path, jars: Path) -> None:
    # pip asks a source distribution for its metadata, and this old setup.py fails with today's pypandoc.
    subprocess.run([sys.executable, "-m", "venv", work / "venv"], check=True, capture_output=True)
    pip = [work / "venv" / "bin" / "python", "-m", "pip"]
    subprocess.run([*pip, "install", "-q", "setuptools<81", "wheel", "pypandoc<1.8"], check=True, capture_output=True)
    download = ["download", "-q", "--no-deps", "--no-build-isolation", "--no-binary", "pyspark", "--dest", work]
    subprocess.run([*pip, *download, f"pyspark=={_PYSPARK}"], check=True, capture_output=True)
    jars_wanted = tuple(_JARS.split())
    with tarfile.open(next(work.glob("pyspark-*.tar.gz"))) as archive:
        for member in archive:
            name = Path(member.name).name
            if not (
                member.isfile() and "/jars/" in member.name and name.startswith(jars_wanted) and name.endswith(".jar")
            ):
                continue
            source = archive.extractfile(member)
            if source is not None and not name.startswith("httpclient5"):
                with source, (jars / name).open("wb") as target:
                    shutil.copyfileobj(source, target)


def _unpack_debian(work: Path, jars: Path) -> None:
    unpacked = work / "unpacked"
    unpacked.mkdir()
    download_debian([*(f"libjersey1-{name}" for name in _DEBIAN), "libjsr311-api-java"], unpacked)
    for jar in unpacked.glob("usr/share/java/*.jar"):
        if not jar.is_symlink():
            shutil.copy(jar, jars)


def download_debian(names: Sequence[str], folder: Path) -> None:
    """Unpack Debian packages into a folder, without installing them.

    Raises:
        OSError, subprocess.CalledProcessError: they cannot be had.
    """
    packages = folder / "packages"
    packages.mkdir()
    command = ["apt-get", "download", "-q", *names]
    if subprocess.run(command, cwd=packages, capture_output=True, check=False).returncode:
        subprocess.run(["apt-get", "update", "-q"], check=True, capture_output=True)
        subprocess.run(command, cwd=packages, check=True, capture_output=True)
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True, capture_output=True)
    shutil.rmtree(packages)


if __name__ == "__main__":
    server = HdfsServer(Path(sys.argv[2]).resolve(), hadoop=int(sys.argv[1]))
    try:
        print(json.dumps({"webhdfs": f"webhdfs://{server.authority}", "rpc": server.rpc}), flush=True)
        sys.stdin.read()
    finally:
        server.stop()
