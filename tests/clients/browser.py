"""A headless Chromium that is driven through pipes, by the DevTools protocol: no driver, no package, no port."""

import base64
import fcntl
import json
import os
import subprocess
import threading

ANSWER_WITHIN = 20


class Browser:
    """A running browser."""

    def __init__(self, binary, profile):
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4: neither may be one of ours meanwhile.
        ours = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
        joined = f"exec 3<&{ours[0]} 4>&{ours[1]} {ours[0]}<&- {ours[1]}>&-; exec \"$@\""
        command = [
            binary, "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={profile}",
        ]
        self.process = subprocess.Popen(
            ["bash", "-c", joined, "browser", *command], pass_fds=ours, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for end in (to_browser, from_browser, *ours):
            os.close(end)
        self._last, self._answers, self._heard = 0, {}, threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        with os.fdopen(self._from, "rb") as answers:
            rest = b""
            while piece := answers.read1(1 << 20):
                *messages, rest = (rest + piece).split(b"\0")
                with self._heard:
                    for message in map(json.loads, messages):
                        if "id" in message:
                            self._answers[message["id"]] = message
                    self._heard.notify_all()

    def send(self, method, session=None, **parameters):
        """Runs a command and returns what it answers."""
        self._last += 1
        command = {"id": self._last, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._to, json.dumps(command).encode() + b"\0")
        with self._heard:
            assert self._heard.wait_for(lambda: command["id"] in self._answers, ANSWER_WITHIN), f"{method}: no answer"
            answer = self._answers.pop(command["id"])
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def page(self, url, **look):
        """Opens a page."""
        return Page(self, url, **look)

    def stop(self):
        self.process.kill()
        self.process.wait()
        os.close(self._to)


class Page:
    """One tab, in a context of its own: nothing is kept from page to page."""

    def __init__(self, browser, url, width=1400, dark=False, language="en"):
        self.browser = browser
        context = browser.send("Target.createBrowserContext")["browserContextId"]
        target = browser.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        start = f"localStorage.setItem('isotherm-language', {json.dumps(language)})"
        self.send("Page.addScriptToEvaluateOnNewDocument", source=start)
        self.send("Page.enable")
        self.send("Page.navigate", url=url)

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def run(self, script):
        """The value of a script in the page, awaited if it is a promise."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_until(self, condition, within=15):
        """Waits until a script's value is true."""
        script = f"""new Promise((resolve, reject) => {{
            const began = Date.now();
            const look = () => ({condition}) ? resolve(true)
                : Date.now() - began > {within * 1000} ? reject(new Error("never true: " + {json.dumps(condition)}))
                : setTimeout(look, 50);
            look();
        }})"""
        return self.run(script)

    def key(self, name, code=None):
        codes = {"Tab": 9, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if name == "Enter" and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=codes[name], **text)

    def picture(self, path):
        """The whole page as a WebP file."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.send("Page.captureScreenshot", format="webp", quality=85, captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(data))
