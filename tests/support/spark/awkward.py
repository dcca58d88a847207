"""Settings whose keys and values mean something to the formats that they pass through."""

from __future__ import annotations

AWKWARD = {
    "spark.a": "plain", "spark.b": " lead", "spark.c": "a=b:c#d!e", "spark.d": "back\\slash\\", "spark.e": "l\ni\rn\te",
    "spark.f": "é日本\U0001f600", "spark.g": "", "spark.key with = and :": "x", "spark.#": "y", "spark.h": "trail \f",
}  # fmt: skip
