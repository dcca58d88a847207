"""Settings in files: Java reads what was written, and nothing secret stands on a command line."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.spark.fake_java import fake_java

from acidctl.base.errors import EnvironmentProblem
from acidctl.demo.walkthrough import write_walkthrough
from acidctl.spark.driver.session_plan import (
    SparkOptions,
    moved_options,
    parsed,
    plan_session,
    split_options,
    trimmed,
    written,
)
from acidctl.storage.registry import open_location

ANY = st.text(st.characters(codec="utf-8") | st.sampled_from("\\\"' =:#!\t\n\r\f"))


@given(st.dictionaries(ANY.filter(bool), ANY))
def test_what_is_written_is_read(pairs: dict[str, str]) -> None:
    text = written(pairs)
    assert text.isascii()
    assert text.count("\n") == len(pairs)
    assert parsed(text) == pairs


def test_properties_as_people_write_them_are_parsed() -> None:
    text = (
        "# a comment\n ! another\\\nspark.a 1\n  spark.b   two words  \nspark.c=three\r\nspark.d : four\nspark.e\n"
        "spark.f=over \\\n   two lines\nspark.g=C:\\\\x\\u0041\\q\nspark.a = last\n"
        "\n=nothing\nspark.h\\ i=j\nspark.l\\\n \\tm = n\n\\\n# a comment, too\nspark.k=\\"
    )
    assert parsed(text) == {
        "spark.a": "last", "spark.b": "two words  ", "spark.c": "three", "spark.d": "four", "spark.e": "",
        "spark.f": "over two lines", "spark.g": "C:\\xAq",
        "": "nothing", "spark.h i": "j", "spark.l\tm": "n", "spark.k": "",
    }  # fmt: skip
    assert trimmed(" a b \t\x01\n") == "a b \t\x01\n"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("-Da=b  -Dc=d\n", ["-Da=b", "-Dc=d"]), ("", []), ("  ", []), ('"-Da=b c"', ["-Da=b c"]),
        ("-Da='b \"c\\'", ['-Da=b "c\\']),
        ('-Da="b \'c\\" \\d"', ["-Da=b 'c\" d"]), ("a\\ b c", ["a b", "c"]), ("''", [""]),
    ],
)  # fmt: skip
def test_options_are_split_as_spark_does(text: str, options: list[str]) -> None:
    assert split_options(text) == options


# --- from PYSPARK_SUBMIT_ARGS and spark-defaults.conf ---


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "spark-submit").touch()
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text("spark.x defaults\nspark.y  defaults\nother.z 1\n")
    java = fake_java(tmp_path / "jdk", "17.0.1")
    return {"JAVA_HOME": str(java), "PATH": "/none", "HOME": str(tmp_path)}


def settings(environ: dict[str, str], home: Path, arguments: str = "pyspark-shell", **conf: str) -> dict[str, str]:
    options = SparkOptions(conf=tuple((f"spark.{key}", value) for key, value in conf.items()))
    made = plan_session(options, environ | {"PYSPARK_SUBMIT_ARGS": arguments}, home, "4.3.0")
    assert not [word for word in made.submit_arguments if "spark." in word or "hush" in word]
    return made.conf


def test_typed_settings_win_over_arguments_and_defaults(environ: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / "spark"
    found = settings(environ, home)
    assert (found["spark.x"], found["spark.y"], "other.z" in found) == ("defaults", "defaults", False)
    found = settings(environ, home, "--conf spark.x=hush1 -c spark.q=hush2 --conf=spark.r=a=b --name n pyspark-shell")
    assert [found[f"spark.{key}"] for key in "xyqr"] == ["hush1", "defaults", "hush2", "a=b"]
    assert settings(environ, home, "--conf spark.x=args pyspark-shell", x="typed")["spark.x"] == "typed"
    assert settings(environ, home, "--driver-java-options '-Dp=hush' x")["spark.driver.extraJavaOptions"] == "-Dp=hush"
    assert settings(environ, home, "--conf spark.master=local[3] x")["spark.master"] == "local[3]"
    other = tmp_path / "other.properties"
    other.write_text("spark.x = other\n")
    found = settings(environ, home, f"--properties-file {other} x")
    assert (found["spark.x"], found.get("spark.y")) == ("other", None), "such a file stands in for the defaults"
    found = settings(environ, home, f"--load-spark-defaults --properties-file={other} x")
    assert (found["spark.x"], found["spark.y"]) == ("other", "defaults")
    with pytest.raises(EnvironmentProblem, match="are not there"):
        settings(environ, home, "--properties-file /none x")
    (home / "conf" / "spark-defaults.conf").unlink()
    (home / "conf" / "spark-defaults.conf").mkdir()
    with pytest.raises(EnvironmentProblem, match="cannot be read"):
        settings(environ, home)


def test_the_master_that_was_asked_for_goes_to_spark(environ: dict[str, str], tmp_path: Path) -> None:
    options = SparkOptions(master="local[1]", conf=(("spark.master", "local[3]"),))
    assert plan_session(options, environ, tmp_path / "spark", "4.3.0").conf["spark.master"] == "local[1]"


# --- judged by Java ---


@pytest.mark.spark
def test_java_reads_the_options(tmp_path: Path) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java on the PATH")
    values = {"a": "plain", "b": "two words", "c": 'quo"te', "d": "back\\slash", "e": "it's", "f": "#x", "g": "t\tab"}
    file = tmp_path / "options"
    option = moved_options([f"-Dmine.{key}={value}" for key, value in values.items()], file)
    run = [java, option.strip('"'), "-XshowSettings:properties", "-version"]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stderr
    for key, value in values.items():
        assert f"mine.{key} = {value}" in said


SESSION = """
import sys
from acidctl.spark.driver.session import start_session
from acidctl.spark.driver.session_plan import SparkOptions
from support.spark.awkward import AWKWARD
from acidctl.spark.driver.session_plan import written

conf = (("spark.driver.extraJavaOptions", "-Dmine.token=hush-typed '-Dmine.other=two words'"), *AWKWARD.items())
with start_session(SparkOptions(master="local[1]", conf=conf)) as session:
    jvm = session.context._jvm
    found = dict(session.context.getConf().getAll())
    assert {key: found[key] for key in AWKWARD} == AWKWARD, found
    assert jvm.java.lang.System.getProperty("mine.token") == "hush-typed"
    assert jvm.java.lang.System.getProperty("mine.other") == "two words"
    assert jvm.java.lang.System.getProperty("mine.submit") == "hush-submit"
    assert found["spark.fromargs"] == "hush-args"
    assert found["spark.mine.default"] == "hush-default"
    properties = jvm.java.util.Properties()
    properties.load(jvm.java.io.StringReader(written(AWKWARD)))
    assert {key: properties.getProperty(key) for key in AWKWARD} == AWKWARD
    print("well")
"""


def command_lines(stop: threading.Event, seen: set[bytes]) -> None:
    """Every command line of the machine, over and over."""
    while not stop.is_set():
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    seen.add((entry / "cmdline").read_bytes())
                except OSError:
                    continue


@pytest.mark.slow
@pytest.mark.spark
def test_spark_gets_every_setting_and_no_command_line_tells_it(child_environ: dict[str, str], tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("spark.mine.default hush-default\n")
    environ = child_environ | {
        "SPARK_CONF_DIR": str(conf),
        "PYSPARK_SUBMIT_ARGS": "--conf spark.fromargs=hush-args pyspark-shell",
        "SPARK_SUBMIT_OPTS": "-Dmine.submit=hush-submit",
        "TMPDIR": str(tmp_path),
    }
    ran, seen = watched([sys.executable, "-c", SESSION], environ, tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "well\n", "")
    assert any(b"SparkSubmit" in line for line in seen)
    assert [line for line in seen if b"hush-" in line and SESSION.encode() not in line] == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("acidctl-")] == []


@pytest.mark.spark
def test_secrets_of_a_configuration_file(child_environ: dict[str, str], tmp_path: Path) -> None:
    fs, path = open_location(str(tmp_path / "table"))
    write_walkthrough(fs, path)
    config = tmp_path / "config.toml"
    config.write_text("[compact]\nconf = ['spark.hadoop.fs.s3a.secret.key=hush-config']\n")
    config.chmod(0o600)
    command = [
        sys.executable,
        "-m",
        "acidctl",
        "--config",
        str(config),
        "compact",
        "--assume-committed=0s",
        "--major",
        "--master",
        "local[1]",
        path,
    ]
    ran, seen = watched(command, child_environ, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert any(b"SparkSubmit" in line for line in seen)
    assert [line for line in seen if b"hush-" in line] == []


def watched(
    command: list[str], environ: dict[str, str], folder: Path
) -> tuple[subprocess.CompletedProcess[str], set[bytes]]:
    """A run, and all command lines that there were meanwhile."""
    stop, seen = threading.Event(), set[bytes]()
    watch = threading.Thread(target=command_lines, args=(stop, seen))
    watch.start()
    try:
        ran = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False, timeout=200)
    finally:
        stop.set()
        watch.join()
    return ran, seen
