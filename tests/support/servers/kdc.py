"""A key distribution centre of MIT Kerberos, with a realm of its own, on loopback.

python -m support.servers.kdc DIRECTORY [PRINCIPAL...]   # prints what a client's process needs; ends with the input
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from support.servers.hdfs_server import ServerUnavailable, free_ports
from support.servers.jvm import Process
from support.servers.kerberos_packages import KerberosPrograms

REALM = "TEST.LOCAL"


class Kdc:
    """Started by the constructor, ended by :meth:`stop`.

    Args:
        directory: for `krb5.conf`, the database, and keytabs.

    Attributes:
        conf: `krb5.conf`.
        environment: what a client's process needs; its ticket cache is empty.
        jvm: the same for a Java.

    Raises:
        ServerUnavailable: its programs cannot be had, or it does not come up.
    """

    def __init__(self, directory: Path) -> None:
        self._programs = KerberosPrograms()
        self._folder = directory
        self.conf = directory / "krb5.conf"
        self.environment = {"KRB5_CONFIG": str(self.conf), "KRB5CCNAME": f"FILE:{directory}/cache"}
        self.jvm = [f"-Djava.security.krb5.conf={self.conf}"]
        self._make_realm(free_ports(1)[0])
        command = [self._programs.program("krb5kdc"), "-n"]
        self._process = Process(command, directory / "kdc.log", environment=self._server())
        try:
            self._process.wait_for(lambda: "commencing operation" in (directory / "kdc.log").read_text())
        except BaseException:
            self.stop()
            raise

    def keytab(self, principal: str) -> Path:
        """The keytab of a principal without its realm (``alice``, ``hive/localhost``), which is made if need be."""
        path = self._folder / f"{principal.replace('/', '-')}.keytab"
        if not path.exists():
            self.add_keys(path, principal)
        return path

    def add_keys(self, keytab: Path, *principals: str) -> None:
        """Make principals, with all their keys in one file."""
        for principal in principals:
            self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")

    def kinit(self, principal: str, *options: str) -> None:
        """Get a ticket."""
        command = [self._programs.program("kinit"), *options, "-k", "-t", str(self.keytab(principal)), principal]
        subprocess.run(command, env=self._client(), check=True)

    def kdestroy(self) -> None:
        """Throw the ticket away."""
        command = [self._programs.program("kdestroy"), "-q"]
        subprocess.run(command, env=self._client(), check=False, capture_output=True)

    def stop(self) -> None:
        """End it."""
        self._process.stop()

    def _client(self) -> dict[str, str]:
        return {**os.environ, **self._programs.environment, **self.environment}

    def _server(self) -> dict[str, str]:
        return {**self._client(), "KRB5_KDC_PROFILE": str(self._folder / "kdc.conf")}

    def _make_realm(self, port: int) -> None:
        folder, modules = self._folder, self._programs.modules
        folder.mkdir(parents=True, exist_ok=True)
        self.conf.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
            + (f"[dbmodules]\n db_module_dir = {modules}\n" if modules else "")
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
            f"[realms]\n {REALM} = {{\n"
            f"  database_name = {folder}/principal\n  key_stash_file = {folder}/stash\n"
            "  supported_enctypes = aes256-cts:normal aes128-cts:normal\n }\n"
            "[logging]\n kdc = STDERR\n"
        )
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", os.urandom(16).hex())

    def _run(self, program: str, *arguments: str) -> None:
        ended = subprocess.run(
            [self._programs.program(program), *arguments],
            env=self._server(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise ServerUnavailable(f"{program}: {ended.stderr[-300:]}")


if __name__ == "__main__":
    server = Kdc(Path(sys.argv[1]).resolve())
    try:
        for name, value in server.environment.items():
            print(f"export {name}={shlex.quote(value)}")
        for principal in sys.argv[2:]:
            print(f"# {principal}@{REALM}: {server.keytab(principal)}")
        print("#", flush=True)
        sys.stdin.read()
    finally:
        server.stop()
