"""The bound on how much a process grows while a native reader works."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from support.paths import PYTHONPATH

from acidctl.base.memory_growth import GROWTH
from acidctl.orc.byte_source import native_read
from acidctl.orc.limits import STRIPE_MEMORY, LimitError


def soft_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_AS)[0]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRIPE_MEMORY.variable, "10M")
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert soft_limit() == resource.RLIM_INFINITY


def take_in_a_read(take: object) -> None:
    with native_read("f", 3):
        take()  # type: ignore[operator]


@pytest.mark.parametrize("take", [lambda: pa.allocate_buffer(1 << 40), lambda: bytearray(1 << 40)])
def test_a_reader_that_grows_beyond_the_bound_is_a_file_beyond_the_limit(take: object) -> None:
    with pytest.raises(LimitError, match=r"stripe 3 of f needs more memory than 30 MiB to be read") as caught:
        take_in_a_read(take)
    assert "max-stripe-memory (10 MiB)" in caught.value.why
    assert soft_limit() == resource.RLIM_INFINITY


def test_what_the_process_has_already_does_not_count() -> None:
    held = pa.allocate_buffer(2 << 30)  # never touched, so it takes address space only
    with native_read("f"):
        assert len(pa.allocate_buffer(50 << 20)) == 50 << 20
    assert len(held) == 2 << 30


def test_readers_that_overlap_share_one_bound_until_the_last_ends() -> None:
    inner, go_on = threading.Event(), threading.Event()

    def read() -> None:
        with GROWTH.limited(1 << 20):
            inner.set()
            go_on.wait(60)

    thread = threading.Thread(target=read)
    with GROWTH.limited(1 << 30):
        bound = soft_limit()
        thread.start()
        assert inner.wait(60)
        assert soft_limit() >= bound > 0
    assert soft_limit() > 0
    go_on.set()
    thread.join()
    assert soft_limit() == resource.RLIM_INFINITY


def test_processes_that_start_within_inherit_no_bound() -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_AS)[0])"
    with GROWTH.limited(1 << 30):
        with GROWTH.lifted():
            done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True)
        assert soft_limit() > 0
        child = os.fork()
        if not child:
            os._exit(soft_limit() != resource.RLIM_INFINITY)
        assert os.waitpid(child, 0)[1] == 0
    assert int(done.stdout) == resource.RLIM_INFINITY


def test_beside_a_lower_limit_of_the_process_it_is_the_machine_that_lacks_memory(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import resource\n"
        "from acidctl.base.memory_growth import address_space\n"
        "from acidctl.base.errors import MemoryProblem\n"
        "from acidctl.orc.byte_source import native_read\n"
        "import pyarrow as pa\n"
        "most = address_space() + (400 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "try:\n"
        "    with native_read('f'):\n"
        "        pa.allocate_buffer(1 << 30)\n"
        "except MemoryProblem as error:\n"
        "    print(error.what)\n"
    )
    environ = {**os.environ, "PYTHONPATH": PYTHONPATH}
    environ.pop(STRIPE_MEMORY.variable)
    done = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, check=True, text=True, env=environ)
    assert "there is not enough memory to read f" in done.stdout
