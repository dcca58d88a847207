"""What is decided before Spark starts: master, Java, SPARK_HOME, properties; what failures say."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from support.spark.fake_java import fake_java

from acidctl.base.errors import (
    AccessError,
    AcidctlError,
    EnvironmentProblem,
    MemoryProblem,
    NoSpaceError,
    StorageError,
    UsageProblem,
)
from acidctl.spark import probe
from acidctl.spark.driver import spark_failures
from acidctl.spark.driver.gateway import DriverLog, last_words
from acidctl.spark.driver.session_plan import SessionPlan, SparkOptions, is_local, plan_session
from acidctl.storage.port import FileSystemSpec


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """A folder that looks like Spark 4.3.0."""
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "jars").mkdir()
    (home / "bin" / "spark-submit").touch()
    (home / "jars" / "spark-core_2.13-4.3.0.jar").touch()
    return home


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A Java, and nothing of Spark's."""
    java = fake_java(tmp_path / "jdk", "17.0.1")
    return {"JAVA_HOME": str(java), "PATH": "/none", "HOME": str(tmp_path)}


def plan(options: SparkOptions, environ: dict[str, str], package: Path, version: str = "4.3.0") -> SessionPlan:
    return plan_session(options, environ, package, version)


def test_defaults_of_a_local_run(environ: dict[str, str], spark_home: Path) -> None:
    made = plan(SparkOptions(), environ, spark_home)
    assert made.master == "local[*]"
    assert made.conf["spark.ui.enabled"] == "false"
    assert made.conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert made.conf["spark.python.daemon.module"] == "acidctl.spark.daemon"
    assert made.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert made.environ["PYSPARK_PYTHON"] == sys.executable
    assert made.java.home == environ["JAVA_HOME"]
    assert made.environ["SPARK_HOME"] == str(spark_home)
    assert made.submit_arguments == ("pyspark-shell",)
    assert made.environ.keys() >= environ.keys()


def test_a_cluster_is_not_told_about_this_machine(environ: dict[str, str], spark_home: Path) -> None:
    made = plan(SparkOptions(master="spark://node1:7077", conf=(("spark.yarn.queue", "nightly"),)), environ, spark_home)
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.python.daemon.module"} & made.conf.keys()
    assert made.conf["spark.yarn.queue"] == "nightly"
    assert not {"SPARK_LOCAL_IP", "PYTHONPATH", "PYTHONSAFEPATH"} & (made.environ.keys() - environ.keys())
    assert (
        plan(SparkOptions(master="spark://localhost:1"), environ, spark_home).conf["spark.driver.host"] == "127.0.0.1"
    )


def test_executors_have_the_limits_of_files(environ: dict[str, str], spark_home: Path) -> None:
    environ |= {"ACIDCTL_LIMIT_STRIPE_MEMORY": "8G", "ACIDCTL_LIMIT_TAIL": "", "ACIDCTL_CAT_LIMIT": "1"}
    made = plan(SparkOptions(master="yarn"), environ, spark_home)
    assert made.conf["spark.executorEnv.ACIDCTL_LIMIT_STRIPE_MEMORY"] == "8G"
    assert sum(key.startswith("spark.executorEnv.") for key in made.conf) == 1
    own = SparkOptions(master="yarn", conf=(("spark.executorEnv.ACIDCTL_LIMIT_STRIPE_MEMORY", "9G"),))
    assert plan(own, environ, spark_home).conf["spark.executorEnv.ACIDCTL_LIMIT_STRIPE_MEMORY"] == "9G"
    assert plan(SparkOptions(), environ, spark_home).environ["ACIDCTL_LIMIT_STRIPE_MEMORY"] == "8G"


def test_yarn_leaves_room_for_python(environ: dict[str, str], spark_home: Path) -> None:
    made = plan(SparkOptions(master="yarn", conf=(("spark.executor.cores", "4"),)), environ, spark_home)
    assert made.conf["spark.executor.memoryOverhead"] == "6144m"
    made = plan(SparkOptions(master="yarn", conf=(("spark.executor.memoryOverhead", "1g"),)), environ, spark_home)
    assert made.conf["spark.executor.memoryOverhead"] == "1g"


def test_what_the_user_says_wins(environ: dict[str, str], spark_home: Path) -> None:
    conf = (("spark.ui.enabled", "true"), ("spark.master", "local[3]"), ("spark.app.name", "mine"))
    made = plan(SparkOptions(conf=conf), environ, spark_home)
    assert made.master == "local[3]"
    assert made.conf["spark.ui.enabled"] == "true"
    assert made.conf["spark.app.name"] == "mine"
    # --master is the more particular of the two.
    assert plan(SparkOptions(master="local[1]", conf=conf), environ, spark_home).master == "local[1]"


def test_defaults_of_an_administrator_are_kept(environ: dict[str, str], spark_home: Path) -> None:
    (spark_home / "conf").mkdir()
    (spark_home / "conf" / "spark-defaults.conf").write_text(
        "# spark.master nothing\n  spark.master   yarn\nspark.ui.enabled=true\nspark.yarn.queue theirs\n"
        "spark.driver.extraJavaOptions -Da=b -Dc=d  \nspark.hadoop.x:1\nspark.app.name theirs\n"
    )
    made = plan(SparkOptions(conf=(("spark.yarn.queue", "q"),), app_name="ours"), environ, spark_home)
    assert made.master == "yarn"
    assert made.conf["spark.ui.enabled"] == "true"
    assert made.conf["spark.yarn.queue"] == "q"
    assert made.conf["spark.app.name"] == "ours"
    assert made.conf["spark.driver.extraJavaOptions"] == "-Da=b -Dc=d"
    assert made.conf["spark.hadoop.x"] == "1"
    assert plan(SparkOptions(master="local[2]"), environ, spark_home).conf["spark.master"] == "local[2]"


@pytest.mark.parametrize(
    ("arguments", "master", "left"),
    [
        ("--master local[7] pyspark-shell", "local[7]", "pyspark-shell"),
        ("--name n --master=yarn pyspark-shell", "yarn", "--name n pyspark-shell"),
        ("--master yarn --conf spark.master=local[3] x", "yarn", "x"),
        ("x --master", "local[*]", "x"),
    ],
)
def test_pyspark_submit_args_are_kept(
    environ: dict[str, str], spark_home: Path, arguments: str, master: str, left: str
) -> None:
    made = plan(SparkOptions(), environ | {"PYSPARK_SUBMIT_ARGS": arguments}, spark_home)
    assert (made.master, " ".join(made.submit_arguments)) == (master, left)


def test_another_python_is_used_without_our_daemon(environ: dict[str, str], spark_home: Path) -> None:
    made = plan(SparkOptions(), environ | {"PYSPARK_PYTHON": "/opt/py/bin/python"}, spark_home)
    assert made.environ["PYSPARK_PYTHON"] == "/opt/py/bin/python"
    assert "spark.python.daemon.module" not in made.conf
    made = plan(SparkOptions(conf=(("spark.pyspark.python", "/p"),)), environ | {"PYSPARK_PYTHON": "/q"}, spark_home)
    assert made.environ["PYSPARK_PYTHON"] == "/p"


def test_another_spark_home_is_used_without_our_daemon(
    environ: dict[str, str], spark_home: Path, tmp_path: Path
) -> None:
    environ = environ | {"SPARK_HOME": str(spark_home)}
    made = plan(SparkOptions(), environ, tmp_path / "pyspark", "4.3.1")
    assert made.spark_home == str(spark_home)
    assert "spark.python.daemon.module" not in made.conf
    with pytest.raises(EnvironmentProblem, match=r"holds Spark 4\.3, but PySpark is 4\.0\.1") as caught:
        plan(SparkOptions(), environ, tmp_path / "pyspark", "4.0.1")
    assert "pyspark==4.3.*" in caught.value.hint
    with pytest.raises(EnvironmentProblem, match="is not a Spark"):
        plan(SparkOptions(), environ | {"SPARK_HOME": str(tmp_path)}, tmp_path / "pyspark")


def test_conf_options_are_split_at_the_first_sign() -> None:
    assert all(map(is_local, ["local", "local[2]", "local[*]", "local[2,4]"]))
    assert not any(map(is_local, ["local-cluster[2,1,1024]", "yarn", "spark://localhost:7077", "k8s://x", ""]))


@pytest.mark.parametrize(
    "master", ["", "spark:/x", "spark://host", "spark://host:0", "spark://host:x", "mesos://a:1", "loca"]
)
def test_malformed_master_is_refused(master: str) -> None:
    with pytest.raises(UsageProblem, match="is not a master that Spark knows"):
        spark_failures.check_master(master)


def test_a_master_that_does_not_answer() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(EnvironmentProblem, match="cannot be reached") as caught:
            spark_failures.check_master(f"spark://{closed}")
        assert caught.value.why == f"{closed}: Connection refused"
        with socket.socket() as standby:
            standby.bind(("127.0.0.1", 0))
            standby.listen()
            spark_failures.check_master(f"spark://{closed},127.0.0.1:{standby.getsockname()[1]}")
    with pytest.raises(EnvironmentProblem, match="cannot be reached"):
        spark_failures.check_master("spark://no-such-host.invalid:7077")


def test_a_free_port_that_connects_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may choose the port that is asked for as the near end, and TCP is content with that."""

    def to_itself(address: tuple[str, int], timeout: float) -> socket.socket:
        connection = socket.socket()
        connection.settimeout(timeout)
        connection.bind(address)
        connection.connect(address)
        return connection

    with socket.socket() as chooser:
        chooser.bind(("127.0.0.1", 0))
        free = f"127.0.0.1:{chooser.getsockname()[1]}"
    monkeypatch.setattr(socket, "create_connection", to_itself)
    with pytest.raises(EnvironmentProblem, match="cannot be reached") as caught:
        spark_failures.check_master(f"spark://{free}")
    assert caught.value.why == f"{free}: Connection refused"


STAGE = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times, "
    "most recent failure: Lost task 3.3 in stage 1.0 (TID 7) (node5 executor 2): {}\n\tat x.y.z(A.scala:1)\n"
)


def test_stage_failure_names_task_host_and_cause() -> None:
    text = STAGE.format("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)")
    failure = spark_failures.stage_failure(text)
    assert failure == spark_failures.StageFailure(
        3, "node5", "SparkException: Python worker exited unexpectedly (crashed)", crashed=True
    )
    lost = spark_failures.stage_failure(
        STAGE.format("ExecutorLostFailure (executor 2 exited ...) Reason: killed by YARN")
    )
    assert lost is not None
    assert lost.crashed
    other = spark_failures.stage_failure(STAGE.format("java.io.IOException: broken"))
    assert other is not None
    assert not other.crashed
    assert spark_failures.stage_failure("anything else") is None


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        (
            "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: "
            "3.10 than that in driver: 3.11, PySpark cannot run",
            EnvironmentProblem,
            "The executors run Python 3.10, this is Python 3.11",
        ),
        (
            'java.io.IOException: Cannot run program "/opt/py": error=2, No such file or directory',
            EnvironmentProblem,
            "An executor cannot start its Python /opt/py",
        ),
        (
            'Cannot run program "/opt/py" (in directory "."): Exec failed, error: 13 (Permission denied) ',
            EnvironmentProblem,
            "An executor cannot start its Python /opt/py",
        ),
        (
            "ModuleNotFoundError: No module named 'isal.igzip'",
            EnvironmentProblem,
            "The executors' Python cannot import isal",
        ),
        ("ERROR x: All masters are unresponsive! Giving up.", EnvironmentProblem, "Spark's master M cannot be reached"),
        (
            "When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment.",
            EnvironmentProblem,
            "Spark on M needs the cluster's configuration",
        ),
        (
            "Failed to submit application_1 to YARN : application_1 submitted by user a to unknown queue: q7",
            UsageProblem,
            "YARN knows no queue q7",
        ),
        (
            "org.apache.hadoop.security.AccessControlException: Client cannot authenticate via:[TOKEN, KERBEROS]",
            AccessError,
            "Spark cannot log in to M",
        ),
        ("java.lang.UnsupportedClassVersionError: a/b", EnvironmentProblem, "Java is too old for this Spark"),
        (
            "java.io.IOException: Invalid UID, could not determine effective user",
            EnvironmentProblem,
            "Java starts no Spark",
        ),
        ("There is insufficient memory for the Java Runtime", MemoryProblem, "Java did not get enough memory"),
        ("java.io.IOException: No space left on device", NoSpaceError, "Spark's scratch folder is full"),
        ("java.net.UnknownHostException: rm.example", EnvironmentProblem, "Spark's master M cannot be reached"),
        ("Job aborted: Master removed our application: FAILED", EnvironmentProblem, "The cluster M could not keep"),
        ("something unheard of", EnvironmentProblem, "Spark failed"),
    ],
)
def test_failures_of_java_are_told_in_plain_words(text: str, kind: type[AcidctlError], what: str) -> None:
    for error in (
        spark_failures.explained(RuntimeError(text), "", "M", None),
        spark_failures.explained(RuntimeError(), text, "M", None),
    ):
        assert type(error) is kind
        assert error.hint
        assert "\n" not in f"{error.what}{error.why}{error.hint}"
        assert text in error.__dict__["spark_log"]
        assert error.what.startswith(what)


def test_a_task_that_failed_in_spark_itself() -> None:
    error = spark_failures.explained(RuntimeError(STAGE.format("java.io.IOException: broken")), "", "M", None)
    assert error.what == "A task failed on node5 outside of acidctl's own code"
    assert error.why == "IOException: broken"


def test_an_error_of_ours_stays_what_it_is() -> None:
    error = StorageError("a", "b", "c")
    assert spark_failures.explained(error, "log", "M", None) is error


def test_java_that_ended_is_told_with_its_signal_or_status() -> None:
    killed = spark_failures.explained(RuntimeError("gone"), "", "M", -9)
    assert (killed.what, killed.why) == (
        "The Java process of Spark was killed by signal 9",
        "often by the system, when memory runs out",
    )
    ended = spark_failures.explained(RuntimeError("gone"), "Error: Could not find or load main class X", "M", 1)
    assert (ended.what, ended.why) == (
        "The Java process of Spark ended with status 1",
        "Error: Could not find or load main class X",
    )


def test_last_words_are_the_last_line_that_tells() -> None:
    assert last_words("") == ""
    assert last_words("one\n two \n") == "two"
    assert last_words("java.lang.IllegalStateException: no\n\tat a.b.c(D.java:1)\nsome more\n") == (
        "java.lang.IllegalStateException: no"
    )


def test_the_log_keeps_what_matters() -> None:
    log = DriverLog()
    heard: list[str] = []
    log.listener = heard.append
    for line in (
        "WARNING: Using incubator modules: jdk.incubator.vector",
        "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
        'Setting default log level to "WARN".',
        "Picked up JAVA_TOOL_OPTIONS: -Xmx1g",
        "26/11/21 WARN NativeCodeLoader: Unable to load native-hadoop library",
        "[0.016s][warning][cds] shared class paths mismatch",
        "WARNING: A terminally deprecated method in sun.misc.Unsafe has been called",
        "",
        "ERROR something real",
    ):
        log.add(line)
    assert log.text() == "ERROR something real"
    assert heard == ["ERROR something real"]
    log.listener = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    log.add("goes on")
    for number in range(1000):
        log.add(str(number))
    assert log.text().count("\n") == 399


def test_doctor_is_told_python_packages_and_java(environ: dict[str, str]) -> None:
    facts = probe.gather(environ | {"HADOOP_CONF_DIR": "/etc/hadoop"})
    assert sys.executable in facts["python"]
    assert {one["name"]: one["version"] for one in facts["packages"]}["pyspark"][0].isdigit()
    assert facts["java"][0] == {"candidate": f"JAVA_HOME={environ['JAVA_HOME']}", "verdict": "Java 17.0.1, chosen"}
    assert facts["environment"] == [{"name": "HADOOP_CONF_DIR", "value": "/etc/hadoop"}]


def test_executors_get_tokens_for_what_kerberos_opens(environ: dict[str, str], spark_home: Path) -> None:
    login = (("kerberos", "true"), ("keytab", "/k"), ("principal", "p"))
    stores = (
        FileSystemSpec("hdfs", login, "nn:8020"),
        FileSystemSpec("hdfs", (("kerberos", "true"),), "acid"),
        FileSystemSpec("hdfs", (("user", "x"),), "open:8020"),
        FileSystemSpec("webhdfs", login, "nn:9870"),
        FileSystemSpec("file"),
    )
    tokens = "spark.kerberos.access.hadoopFileSystems"
    made = plan(SparkOptions(master="yarn", stores=stores), environ, spark_home).conf
    assert made[tokens] == "hdfs://nn:8020,hdfs://acid"
    assert (made["spark.kerberos.keytab"], made["spark.kerberos.principal"]) == ("/k", "p")
    own = ((tokens, "hdfs://other,hdfs://acid"), ("spark.kerberos.keytab", "/mine"))
    made = plan(SparkOptions(master="yarn", conf=own, stores=stores), environ, spark_home).conf
    assert made[tokens] == "hdfs://other,hdfs://acid,hdfs://nn:8020"
    assert made["spark.kerberos.keytab"] == "/mine"
    assert "spark.kerberos.principal" not in made
    for options in (SparkOptions(master="yarn", stores=stores[2:]), SparkOptions(master="local[2]", stores=stores)):
        assert not [key for key in plan(options, environ, spark_home).conf if key.startswith("spark.kerberos")]
