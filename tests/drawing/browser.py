"""A headless Chromium that a test drives through the DevTools protocol, over pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

# Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
_START = (
    "import os, sys; reads, writes = map(int, sys.argv[1:3]); "
    "os.dup2(reads, 3); os.dup2(writes, 4); os.execv(sys.argv[3], sys.argv[3:])"
)

_SECONDS = 60


class Page:
    """A page in the browser.

    Attributes:
        problems: the errors and messages of the page's console.
        requests: the addresses that the page has requested.
    """

    def __init__(self, browser: Browser, session: str) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._browser, self._session = browser, session
        browser.pages[session] = self

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command about the page, and return the answer."""
        return self._browser.send(method, self._session, **parameters)

    def open(self, address: str) -> None:
        """Open an address, and wait until it is loaded and painted."""
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")
        self.settle()

    def settle(self) -> None:
        """Wait for two frames."""
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; promises are awaited."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript condition holds."""
        end = time.monotonic() + _SECONDS
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never: {condition}"
            time.sleep(0.02)

    def click(self, x: float, y: float) -> None:
        """Press and release the left button at a point."""
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.settle()

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send an event of the mouse."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, key: str, text: str = "") -> None:
        """Press and release a key."""
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def screenshot(self, path: Path) -> None:
        """Write a picture of the page."""
        answer = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))

    def resize(self, width: int, height: int, *, scale: float = 1) -> None:
        """Set the size of the window."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )


class Browser:
    """A running Chromium.

    Attributes:
        pages: the pages by their session.
    """

    def __init__(self, folder: Path) -> None:
        """Start the browser.

        Args:
            folder: an empty folder for its files.
        """
        assert CHROMIUM is not None
        self.pages: dict[str, Page] = {}
        self._number = 0
        self._received = b""
        reads, self._writes = os.pipe()
        self._reads, writes = os.pipe()
        inner = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (reads, writes)]
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *map(str, inner), *command],
            pass_fds=inner,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)},
        )
        for each in (reads, writes, *inner):
            os.close(each)

    def page(self) -> Page:
        """Open an empty page whose errors and requests are recorded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        return page

    def send(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Send a command, and return the answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._record(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._reads], [], [], _SECONDS)
            assert ready, "the browser does not answer"
            read = os.read(self._reads, 1 << 20)
            assert read, "the browser has ended"
            self._received += read
        message, self._received = self._received.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _record(self, event: dict[str, Any]) -> None:
        page = self.pages.get(event.get("sessionId", ""))
        if page is None:
            return
        parameters = event["params"]
        if event["method"] == "Network.requestWillBeSent":
            page.requests.append(parameters["request"]["url"])
        elif event["method"] == "Runtime.exceptionThrown":
            page.problems.append(str(parameters["exceptionDetails"]))
        elif event["method"] == "Runtime.consoleAPICalled":
            page.problems.append(str(parameters["args"]))
        elif event["method"] == "Log.entryAdded":
            page.problems.append(parameters["entry"]["text"])

    def close(self) -> None:
        """End the browser."""
        try:
            self.send("Browser.close")
        except (AssertionError, OSError):
            self._process.kill()
        self._process.wait(_SECONDS)
        os.close(self._reads)
        os.close(self._writes)


@contextmanager
def running_browser(folder: Path) -> Iterator[Browser]:
    """Run a browser during a `with` block."""
    browser = Browser(folder)
    try:
        yield browser
    finally:
        browser.close()
