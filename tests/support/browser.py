"""A headless Chromium that shows pages from the disk, told what to do over a pipe by Chrome's DevTools Protocol.

It is Debian's, where that is installed, as `.ci/run` does it.  axe-core, which judges whether everybody
can use a page, is npm's, by exact version and checksum, kept in the cache.

    python -m support.browser PAGE.html FOLDER     # pictures of a page, in several widths, light and dark
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import select
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.servers.hdfs_server import ServerUnavailable, cache_folder

AXE = "axe-core@4.14.1"
_AXE_SHA256 = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
"""Of npm's archive."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions", "--no-sandbox",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip
_PIPES = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
_SECONDS = 60.0
_QUIET_SECONDS = 0.3


class Page:
    """The one page of a browser.

    Attributes:
        events: what happened since it was opened, as the protocol says it.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._read = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """What a command of the protocol gives."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._next(_SECONDS)
            assert answer is not None, f"{method}: the browser does not answer"
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self, seconds: float) -> dict[str, Any] | None:
        until = time.monotonic() + seconds
        while b"\0" not in self._read:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                return None
            part = os.read(self._from, 1 << 20)
            assert part, "the browser has ended"
            self._read += part
        line, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def open(self, path: Path, width: int = 1200, *, dark: bool = False, height: int = 900) -> None:
        """Show a file; `events` are those since then."""
        self.events = []
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            event = self._next(_SECONDS)
            assert event is not None, f"{path} is not loaded"
            self.events.append(event)
        while (event := self._next(_QUIET_SECONDS)) is not None:
            self.events.append(event)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """A key, down and up."""
        code = {"Tab": 9, "Enter": 13}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, path: Path) -> None:
        """All of the page, as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def spoken(self) -> list[tuple[str, str]]:
        """Role and name of what a screen reader meets."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")
        ]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        asked = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in asked]

    def complaints(self) -> list[str]:
        """What the browser had to say: errors, warnings, exceptions, what a script printed."""
        wanted = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return [json.dumps(event["params"])[:500] for event in self.events if event.get("method") in wanted]


@contextmanager
def browser() -> Iterator[Page]:
    """Start one, and end it.

    Raises:
        ServerUnavailable: there is none.
    """
    program = _program()
    down, up = os.pipe(), os.pipe()
    # Its children may write for a moment after its end.
    with tempfile.TemporaryDirectory(prefix="acidctl-browser-", ignore_cleanup_errors=True) as home:
        line = [sys.executable, "-c", _PIPES, str(down[0]), str(up[1]), program, *_FLAGS, f"--user-data-dir={home}"]
        with subprocess.Popen(
            line, pass_fds=(down[0], up[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": home},
        ) as process:  # fmt: skip
            os.close(down[0])
            os.close(up[1])
            try:
                yield Page(down[1], up[0])
            finally:
                process.kill()
                process.wait()
                os.close(down[1])
                os.close(up[0])


def _program() -> str:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise ServerUnavailable("no Chromium: apt-get install chromium")
    return found


def axe() -> str:
    """The source of axe-core.

    Raises:
        ServerUnavailable: it is not in the cache and cannot be fetched, or is another one.
    """
    kept = cache_folder() / f"{AXE}-{_AXE_SHA256[:12]}.js"
    if not kept.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise ServerUnavailable("axe-core cannot be fetched: there is no npm")
        with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
            line = [npm, "pack", "--silent", AXE]
            done = subprocess.run(line, cwd=work, capture_output=True, text=True, check=False)
            archive = next(Path(work).glob("*.tgz"), None)
            if done.returncode or archive is None:
                raise ServerUnavailable(f"{AXE} cannot be fetched: {done.stderr[:200]}")
            if hashlib.sha256(archive.read_bytes()).hexdigest() != _AXE_SHA256:
                raise ServerUnavailable(f"{AXE} is another one than was expected")
            with tarfile.open(archive) as tar:
                source = tar.extractfile("package/axe.min.js")
                assert source
                (Path(work) / "axe.js").write_bytes(source.read())
            (Path(work) / "axe.js").rename(kept)
    return kept.read_text("utf-8")


if __name__ == "__main__":
    with browser() as shown:
        for columns, dark in ((360, False), (800, False), (1400, False), (1200, True)):
            shown.open(Path(sys.argv[1]).resolve(), columns, dark=dark)
            shown.picture(Path(sys.argv[2]) / f"{columns}{'-dark' if dark else ''}.png")
