"""Turn Spark's failures, walls of Java text, into errors that say what happened, why, and what to do."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
from dataclasses import dataclass

from acidctl.base.errors import (
    AccessError,
    AcidctlError,
    EnvironmentProblem,
    MemoryProblem,
    NoSpaceError,
    UsageProblem,
)
from acidctl.hadoop.kerberos import KINIT, ticket_problem
from acidctl.spark.driver.gateway import last_words

CONNECT_SECONDS = 5.0
NO_LOGIN = "Client cannot authenticate via:[TOKEN, KERBEROS]"
"""Hadoop's client logs this if it finds no valid ticket; then it tries for minutes."""


@dataclass(frozen=True, slots=True)
class StageFailure:
    """The task that made Spark give a job up.

    Attributes:
        partition: the index of the task's partition.
        host: where it ran last, or an empty string.
        cause: the first line of the reason.
        crashed: whether the worker or the executor died, rather than said why.
    """

    partition: int
    host: str
    cause: str
    crashed: bool


def stage_failure(text: str) -> StageFailure | None:
    """Read Spark's ``Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times, ...``."""
    match = re.search(
        r"Task (\d+)\S* in stage [\d.]+ failed \d+ times?, most recent failure: "
        r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \((\S+) executor \S+\): (.*)",
        text,
    )
    if match is None:
        return None
    crashed = re.search(
        r"Python worker exited unexpectedly|Python worker failed to connect|ExecutorLostFailure"
        r"|Python worker process terminated",
        match[3],
    )
    return StageFailure(int(match[1]), match[2], _short(match[3]), crashed is not None)


def explained(error: BaseException, log: str, master: str, status: int | None) -> AcidctlError:
    """Return the error to show for `error`.

    Args:
        error: what PySpark, Py4J or acidctl raised.
        log: the last lines of the driver's Java; kept on the result as ``spark_log``, after the error's own text.
            Raise the result ``from None``: to print `error` later is to call a Java that is gone.
        master: the master URL.
        status: Java's exit status, or None while it runs.
    """
    if isinstance(error, AcidctlError):
        result = error
    else:
        # An exception of Java asks Java for its text: this must happen while Java still runs, and only here.
        text = message_of(error)
        # The log may hold older troubles that were overcome, so the error itself goes first.
        result = _known(text, master) or _known(log, master) or _unknown(text, log, status)
        log = f"{text}\n{log}"
    result.__dict__.setdefault("spark_log", log)
    return result


def tells_of_an_end(error: BaseException) -> bool:
    """Return whether an error comes from a Java process that has ended or is about to, and answers no more."""
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - loaded once Java runs

    if isinstance(error, AcidctlError):
        return False
    if isinstance(error, (ConnectionError, EOFError)):
        return True
    if isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError):
        return True
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - Java threw it, and is not there to be asked for its text
        return True
    # An orderly end, say by SIGTERM, stops Spark first.
    return "SparkContext was shut down" in text or "stopped SparkContext" in text


def message_of(error: BaseException) -> str:
    """Return the message of an exception, even if its Java process has ended."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - Py4J cannot reach Java any more
        return type(error).__name__


def unreachable(master: str, why: str) -> EnvironmentProblem:
    """Return the error for a master that does not answer."""
    return EnvironmentProblem(_NOT_REACHED.format(master=master), why, _REACH_HINT)


def no_executors(master: str, log: str, seconds: float) -> EnvironmentProblem:
    """Return the error for a cluster that gave no executor within `seconds`."""
    is_full = "Initial job has not accepted any resources" in log
    why = "it has no free resources, or fewer than were asked for" if is_full else last_words(log)
    hint = "Look at the cluster, or ask for less: --conf spark.executor.memory=1g --conf spark.executor.cores=1"
    return EnvironmentProblem(f"The cluster {master} gave no executor within {seconds:g} seconds", why, hint)


def master_addresses(master: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of a standalone master; empty for one of another kind.

    Raises UsageProblem if it is not a master URL.
    """
    if not re.match(r"(local(\[(\*|\d+)(, *\d+)?\])?|local-cluster\[.*\]|yarn|spark://.+|k8s://.+)$", master):
        raise _no_master(master, "")
    addresses = []
    for address in master.removeprefix("spark://").split(",") if master.startswith("spark://") else ():
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise _no_master(master, "an address is HOST:PORT")
        addresses.append((host, int(port)))
    return addresses


def _no_master(master: str, why: str) -> UsageProblem:
    return UsageProblem(_NOT_KNOWN.format(master=master), why, _MASTER_HINT)


def check_master(master: str) -> None:
    """Refuse a standalone master that does not listen, at once rather than after Spark's minute of retries.

    Raises:
        UsageProblem: not a master URL.
        EnvironmentProblem: none of its addresses can be connected to.
    """
    problems = []
    for host, port in master_addresses(master):
        why = os.strerror(errno.ECONNREFUSED)
        try:
            with socket.create_connection((host.strip("[]"), port), timeout=CONNECT_SECONDS) as connection:
                # The system may pick the free port itself as the near end here: TCP then connects it to itself.
                if connection.getsockname() != connection.getpeername():
                    return
        except OSError as error:
            why = error.strerror or str(error)
        problems.append(f"{host}:{port}: {why}")
    if problems:
        raise unreachable(master, "; ".join(problems))


def _short(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else ""
    # Java's class names in front of a message say little to a user.
    line = line.partition(" Consider setting '")[0]
    line = re.sub(r"^\d{4}-\d\d-\d\d [\d:]+ [A-Z]+ \S+: ", "", line)  # how our log4j2.properties starts a line
    line = re.sub(r"^(?:[\w$]+\.)+([\w$]+(?:Exception|Error)): ", r"\1: ", line)
    return line[:300]


_PYTHON_HINT = "Name a Python that exists on the executors with PYSPARK_PYTHON or --conf spark.pyspark.python=..."
_MASTER_HINT = "Use local[4], local[*], spark://host:7077, yarn or k8s://https://host:port"
_NOT_KNOWN = "{master!r} is not a master that Spark knows"
_NOT_REACHED = "Spark's master {master} cannot be reached"
_REACH_HINT = "Check the address and that it runs, or leave --master out to run on this machine"

# fmt: off
RULES: tuple[tuple[str, type[AcidctlError], str, str, str], ...] = (
    (r"PYTHON_VERSION_MISMATCH\][^\n]*?([23]\.\d+)[^\n]*?([23]\.\d+)", EnvironmentProblem,
     "The executors run Python {1}, this is Python {2}", "PySpark needs the same version on both sides", _PYTHON_HINT),
    (r"Cannot run program \"([^\"]+)\"(?: \(in directory [^)]*\))?: "
     r"(?:error=\d+, |Exec failed, error: \d+ \()?([^\n)]*)", EnvironmentProblem,
     "An executor cannot start its Python {1}", "{2}", _PYTHON_HINT),
    (r"ModuleNotFoundError: No module named '([^'.]+)", EnvironmentProblem,
     "The executors' Python cannot import {1}", "it is not installed there",
     "Install acidctl's packages for the executors' Python, or name another one with PYSPARK_PYTHON"),
    (r"All masters are unresponsive", EnvironmentProblem,
     _NOT_REACHED, "none of its addresses answered Spark", _REACH_HINT),
    (r"either HADOOP_CONF_DIR or YARN_CONF_DIR must be set", EnvironmentProblem,
     "Spark on {master} needs the cluster's configuration", "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set",
     "Set HADOOP_CONF_DIR to the folder with yarn-site.xml and core-site.xml"),
    (re.escape(NO_LOGIN), AccessError,
     "Spark cannot log in to {master}", "{ticket}",
     KINIT + "; Java reads tickets from files alone: KRB5CCNAME=FILE:..."),
    (r"(?:submitted by user \S+ )?to unknown queue:? ?(\S*)", UsageProblem,
     "YARN knows no queue {1}", "", "Name another one: --conf spark.yarn.queue=..."),
    (r"(Could not parse Master URL|Master must either be|Invalid master URL)[^\n]*", UsageProblem,
     _NOT_KNOWN, "{0}", _MASTER_HINT),
    (r"Cluster deploy mode is not applicable[^\n]*", UsageProblem,
     "spark.submit.deployMode=cluster cannot be used here", "{0}", "Use the client mode"),
    (r"\[INVALID_CONF_VALUE[^\]\n]*\] ([^\n]*)", UsageProblem,
     "A Spark property has a value that Spark cannot use", "{1}", "Correct it"),
    (r"UnsupportedClassVersionError[^\n]*", EnvironmentProblem,
     "Java is too old for this Spark", "{0}", "Set JAVA_HOME to a newer JDK"),
    (r"(?:Could not reserve enough space|Cannot allocate memory|OutOfMemoryError|insufficient memory"
     r"|INVALID_DRIVER_MEMORY)[^\n]*", MemoryProblem,
     "Java did not get enough memory", "{0}", "Free some memory, or give Spark less: --conf spark.driver.memory=512m"),
    (r"No space left on device", NoSpaceError,
     "Spark's scratch folder is full", "{0}", "Name another one: --conf spark.local.dir=..."),
    (r"Invalid UID, could not determine effective user|invalid null input: name", EnvironmentProblem,
     "Java starts no Spark for a user without a name", "the system knows no name of user {uid}, as in a container: {0}",
     "Give it one in /etc/passwd, with useradd, or use --engine local"),
    (r"UnknownHostException: ([^\s:]+)", EnvironmentProblem,
     _NOT_REACHED, "the host {1} is not known", _REACH_HINT),
    (r"Address already in use[^\n]*|Cannot assign requested address[^\n]*", EnvironmentProblem,
     "Spark's driver cannot listen for its executors", "{0}", "Set SPARK_LOCAL_IP to an address of this machine"),
    (r"Master removed our application: (\w+)", EnvironmentProblem,
     "The cluster {master} could not keep an executor running", "its master removed the application ({1})",
     "Look at the logs of the workers: often Java, memory or an address that they cannot reach"),
)
# fmt: on
"""Failures by a pattern of Spark's text, of which the first that matches counts: class, what, why, hint; ``{1}`` is the
first group."""


def _known(text: str, master: str) -> AcidctlError | None:
    for pattern, kind, what, why, hint in RULES:
        if match := re.search(pattern, text):
            ticket = ticket_problem() if "{ticket}" in why else ""
            values = {"master": master, "uid": os.geteuid(), "ticket": ticket}
            groups = match[0], *match.groups("")
            return kind(what.format(*groups, **values).rstrip(), why.format(*groups, **values), hint)
    return None


def _unknown(text: str, log: str, status: int | None) -> AcidctlError:
    failure = stage_failure(text)
    if failure is not None:
        where = f" on {failure.host}" if failure.host else ""
        what = f"A task failed{where} outside of acidctl's own code"
        return EnvironmentProblem(what, failure.cause, "See what Spark logged with --debug")
    thrown = re.search(r"^: (\S.*)", text, re.MULTILINE)  # how Py4J tells what Java threw
    # Once Java has ended, Py4J only tells that it lost the connection.
    why = _short(thrown[1]) if thrown else _short(last_words(log) or text)
    hint = "See what it logged with --debug, or use --engine local"
    if status is None:
        return EnvironmentProblem("Spark failed", why, hint)
    if status >= 0:
        return EnvironmentProblem(f"The Java process of Spark ended with status {status}", why, hint)
    why = "often by the system, when memory runs out" if status == -signal.SIGKILL else why
    what = f"The Java process of Spark was killed by signal {-status}"
    return EnvironmentProblem(what, why, "Free some memory, or use --engine local")
