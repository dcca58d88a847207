"""Java of this package in the driver: compiled by Janino, which is among Spark's own jars."""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class JavaClasses:
    """The classes of one file.

    Attributes:
        gateway: to the Java in which they were compiled.
        compiler: Janino's.
    """

    gateway: Any
    compiler: Any

    def new(self, name: str) -> Any:
        """Return an object of a class whose constructor takes nothing."""
        gateway = self.gateway
        made = self.compiler.getClassLoader().loadClass(name)
        none = gateway.new_array(gateway.jvm.Class, 0), gateway.new_array(gateway.jvm.Object, 0)
        return made.getDeclaredConstructor(none[0]).newInstance(none[1])

    def files(self) -> dict[str, bytes]:
        """Names in a jar, and what is in it."""
        codes = self.compiler.getBytecodes()
        return {f"{name.replace('.', '/')}.class": bytes(codes[name]) for name in codes}


def java_source(name: str) -> str:
    """Return a file beside this one."""
    return (importlib.resources.files("acidctl.spark.datasource") / name).read_text("utf-8")


_COMPILED: dict[tuple[int, str], JavaClasses] = {}
"""By gateway and text. py4j keeps methods by the name of their class: a second class of a name cannot be called."""


def compile_java(spark: Any, source: str) -> JavaClasses:
    """The classes of a text, compiled once; raises whatever Java does where it does not fit the session's Spark."""
    gateway = spark.sparkContext._gateway
    key = id(gateway), source
    if key not in _COMPILED:
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(spark._jsparkSession.getClass().getClassLoader())
        compiler.cook(source)
        _COMPILED[key] = JavaClasses(gateway, compiler)
    return _COMPILED[key]


def short_error(error: Exception) -> str:
    """Return one line of what Java, or py4j, says."""
    java = getattr(error, "java_exception", None)
    lines = str(java if java is not None else error).strip().splitlines()
    if lines and lines[0].endswith("Trace:"):  # py4j's own first line, without a reason
        lines = lines[1:]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
