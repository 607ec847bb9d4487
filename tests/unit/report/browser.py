"""Headless Chromium, driven over a pipe: what a page looks like there, in numbers."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: The browser; none where descriptors cannot be handed down.
PROGRAM = next(filter(None, map(shutil.which, _NAMES)), None) if os.name == "posix" else None
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-extensions",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)
#: Seconds within which a browser answers.
PATIENCE = 60.0

#: Elements that are wider than the window or than the box around them, and texts of a plot that lie over each other.
MISPLACED = """(() => {
  const shown = (node) => node.checkVisibility({ contentVisibilityAuto: true, opacityProperty: true });
  const said = (node) => node.textContent.trim().slice(0, 40);
  const name = (node) => `${node.localName}.${node.getAttribute("class") ?? ""}: ${said(node)}`;
  const found = [];
  const width = document.documentElement.clientWidth;
  for (const node of document.querySelectorAll("body *")) {
    if (node.closest("svg, .hidden, .skip, script, noscript, option, details:not([open]) > :not(summary)")) continue;
    const box = node.getBoundingClientRect();
    if (!box.width || !shown(node)) continue;
    const beyond = (edge, what) => found.push(`beyond ${what} by ${box.right - edge}: ${name(node)}`);
    if (box.right > width + 1 || box.left < -1) beyond(width, "the window");
    const around = node.parentElement.closest("article, figure, td, th, dd, .fold, .cards")?.getBoundingClientRect();
    if (around?.width && box.right > around.right + 1) beyond(around.right, "its box");
  }
  for (const plot of document.querySelectorAll("svg:not(.hidden)")) {
    const frame = plot.getBoundingClientRect();
    if (!frame.width || !shown(plot)) continue;
    const texts = Array.from(plot.querySelectorAll("text"), (text) => [text, text.getBoundingClientRect()]);
    const label = plot.getAttribute("aria-label");
    texts.forEach(([text, a], i) => {
      const within = a.right <= frame.right + 2 && a.left >= frame.left - 2;
      const inside = within && a.bottom <= frame.bottom + 3 && a.top >= frame.top - 2;
      if (!inside) found.push(`beyond its plot: ${text.textContent}, ${label}`);
      for (const [other, b] of texts.slice(0, i)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const up = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && up > 3) found.push(`over each other: ${other.textContent} | ${text.textContent}, ${label}`);
      }
    });
  }
  return found;
})()"""


class Browser:
    """One page of a headless browser."""

    def __init__(self, folder: str) -> None:
        assert PROGRAM is not None
        asked, self._write = os.pipe()
        self._read, told = os.pipe()
        # The browser reads from descriptor 3 and writes to 4; a shell puts them there.
        line = f'exec "$0" "$@" 3<&{asked} 4>&{told}'
        command = ["/bin/bash", "-c", line, PROGRAM, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        nothing = subprocess.DEVNULL
        self.process = subprocess.Popen(command, pass_fds=(asked, told), stdout=nothing, stderr=nothing)
        os.close(asked)
        os.close(told)
        os.set_blocking(self._read, False)
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        pages = [one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        self._session = self.send("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            if time.monotonic() > until:
                raise TimeoutError("the browser does not answer")
            try:
                part = os.read(self._read, 1 << 20)
            except BlockingIOError:
                time.sleep(0.002)
                continue
            if not part:
                raise EOFError("the browser ended")
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        received: dict[str, Any] = json.loads(message)
        return received

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol, and wait for its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, page: Path, part: str = "") -> None:
        """Load a page, at a part of it."""
        for address in ("about:blank", page.as_uri() + part):  # another part of the same page would not load it again
            self.events.clear()
            self.send("Page.navigate", url=address)
            while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
                self.events.append(self._receive())
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def run(self, script: str) -> Any:
        """Run a script in the page, and wait for its value."""
        made = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in made:
            raise RuntimeError(made["exceptionDetails"])
        return made["result"].get("value")

    @property
    def complaints(self) -> list[str]:
        """Errors of the page since it was opened."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in kinds]

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Make the window so wide, in a light or dark theme."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[theme])

    def print_pages(self) -> int:
        """Print the page; return the number of pages."""
        made = self.send("Page.printToPDF", preferCSSPageSize=True)
        return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(made["data"])))

    def close(self) -> None:
        """End the browser."""
        try:
            self._session = ""
            self.send("Browser.close")
            self.process.wait(10)
        except (EOFError, OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self._write)
        os.close(self._read)


@contextmanager
def started() -> Iterator[Browser]:
    """Start a browser, and end it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(folder)
        try:
            yield browser
        finally:
            browser.close()
