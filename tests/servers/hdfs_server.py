"""A real one-node HDFS (NameNode, DataNode, WebHDFS) on free loopback ports.

The server's jars come from PyPI: the source distribution of PySpark 2.4.8 bundles Hadoop 2.7.3.  Four Jersey 1 jars,
which the NameNode's WebHDFS needs, come from Debian packages.  Both are put into a cache folder once (220 MB to
download, 34 MB kept); a start then takes some seconds.  Needs java (8 or later), pip, and for the first time apt-get
and dpkg-deb.  User `root` is the superuser; permissions are enforced for any other user name.

    python tests/servers/hdfs_server.py DIRECTORY     # start one, print its address, stop at the end of the input
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
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_SERVLETS = '<web-app version="2.4" xmlns="http://java.sun.com/xml/ns/j2ee"></web-app>'
_LOG4J = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


class HdfsUnavailable(Exception):
    """Java, the packages or the network cannot be had, or the server does not come up; the text says which."""


class HdfsServer:
    """Started by the constructor, ended by :meth:`stop`.

    Attributes:
        authority: ``127.0.0.1:PORT`` of the NameNode's WebHDFS.
        rpc: ``hdfs://127.0.0.1:PORT``.
    """

    def __init__(self, directory: Path, timeout: float = 90) -> None:
        self._directory = directory
        self._java = _find_java()
        self._library = _fetch_jars()
        self._processes: list[subprocess.Popen[bytes]] = []
        ports = _free_ports(5)
        self.authority = f"127.0.0.1:{ports[1]}"
        self.rpc = f"hdfs://127.0.0.1:{ports[0]}"
        self._configure(ports)
        try:
            if self._launch("format", _NAME_NODE, "-format", "-force", "-nonInteractive").wait(timeout):
                raise HdfsUnavailable(f"formatting HDFS failed: {self._log_tail('format')}")
            self._processes.clear()
            self._launch("namenode", _NAME_NODE)
            self._launch("datanode", _DATA_NODE)
            self._wait(timeout)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the two processes that were started, and only those."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._processes:
                if process.poll() is None:
                    process.send_signal(number)
            for process in self._processes:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    continue

    def _configure(self, ports: list[int]) -> None:
        for name in ("conf", "log", "webapps/hdfs/WEB-INF", "webapps/datanode/WEB-INF", "webapps/static/WEB-INF"):
            (self._directory / name).mkdir(parents=True, exist_ok=True)
        for web in self._directory.glob("webapps/*/WEB-INF"):  # the servers insist on these folders
            (web / "web.xml").write_text(_SERVLETS)
        address = [f"127.0.0.1:{port}" for port in ports]
        core = {
            "fs.defaultFS": self.rpc,
            "hadoop.tmp.dir": str(self._directory / "data"),
            "hadoop.http.staticuser.user": "nobody",
        }
        hdfs = {
            "dfs.namenode.rpc-address": address[0],
            "dfs.namenode.http-address": address[1],
            "dfs.datanode.address": address[2],
            "dfs.datanode.http.address": address[3],
            "dfs.datanode.ipc.address": address[4],
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
        }
        for name, properties in (("core-site.xml", core), ("hdfs-site.xml", hdfs)):
            body = "".join(
                f"<property><name>{key}</name><value>{escape(value)}</value></property>\n"
                for key, value in properties.items()
            )
            (self._directory / "conf" / name).write_text(f"<configuration>\n{body}</configuration>\n")
        (self._directory / "conf" / "log4j.properties").write_text(_LOG4J)

    def _launch(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        version = subprocess.run([self._java, "-version"], capture_output=True, text=True, check=False).stderr
        opens = [] if '"1.8.' in version else [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS]
        class_path = [self._directory / "conf", self._directory, self._library / "*"]
        command = [
            *(self._java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"),
            *(f"-Dhadoop.log.dir={self._directory / 'log'}", *opens),
            *("-cp", os.pathsep.join(str(path) for path in class_path), main, *arguments),
        ]
        with (self._directory / "log" / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self._directory,
                env={**os.environ, "HADOOP_USER_NAME": "root"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _wait(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not self._is_up():
            if any(process.poll() is not None for process in self._processes):
                raise HdfsUnavailable(f"HDFS ended: {self._log_tail('namenode')} {self._log_tail('datanode')}")
            if time.monotonic() > end:
                raise HdfsUnavailable(f"HDFS is not up after {timeout:.0f} s: see {self._directory}/log")
            time.sleep(0.1)

    def _is_up(self) -> bool:
        url = f"http://{self.authority}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy
        try:
            with opener.open(url, timeout=2) as answer:
                beans = json.load(answer)["beans"]
        except (OSError, ValueError, KeyError):
            return False
        return bool(beans) and beans[0].get("NumLiveDataNodes", 0) >= 1 and beans[0].get("FSState") == "Operational"

    def _log_tail(self, name: str) -> str:
        path = self._directory / "log" / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return lines[-1] if lines else "(no log)"


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        raise HdfsUnavailable("no java: set JAVA_HOME or put java on PATH")
    return java


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def _fetch_jars() -> Path:
    """The folder of the server's jars, filled at the first use."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hdfs-server"
    cache = Path(os.environ.get("HDFS_SERVER_CACHE") or default)
    library = cache / f"lib-{_HADOOP}"
    if (library / ".complete").exists():
        return library
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as name:
        work = Path(name)
        work.chmod(0o755)  # apt-get gives its privileges up and must still see the folder
        jars = work / "lib"
        jars.mkdir()
        try:
            _unpack_pyspark(work, jars)
            _unpack_debian(work, jars)
        except (OSError, subprocess.CalledProcessError, tarfile.TarError) as error:
            raise HdfsUnavailable(f"the packages of Hadoop cannot be had: {error}") from error
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
    packages = work / "debs"
    packages.mkdir()
    command = ["apt-get", "download", "-q", *(f"libjersey1-{name}" for name in _DEBIAN), "libjsr311-api-java"]
    if subprocess.run(command, cwd=packages, capture_output=True, check=False).returncode:
        subprocess.run(["apt-get", "update", "-q"], check=True, capture_output=True)
        subprocess.run(command, cwd=packages, check=True, capture_output=True)
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, work / "unpacked"], check=True, capture_output=True)
    for jar in (work / "unpacked").glob("usr/share/java/*.jar"):
        if not jar.is_symlink():
            shutil.copy(jar, jars)


if __name__ == "__main__":
    server = HdfsServer(Path(sys.argv[1]).resolve())
    try:
        print(json.dumps({"webhdfs": f"webhdfs://{server.authority}", "rpc": server.rpc}), flush=True)
        sys.stdin.read()
    finally:
        server.stop()
