"""Chromium on a host of the laboratory, driven through chromedriver (the WebDriver protocol, and DevTools by it)."""

import base64
import http.client
import json

from lab.process import Process, wait_until

PORT = 9515
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
         "--force-device-scale-factor=1", "--hide-scrollbars", "--window-size=1280,1000"]
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Space": " "}


class Browser:
    """Runs while the `with` block runs."""

    def __init__(self, host, folder, log):
        self.host, self.folder, self.log_file = host, folder, log
        self.requests = []  # the addresses of everything it asked for
        self.complaints = []  # what it wrote to its console at level warning or worse

    def __enter__(self):
        self.profile = self.folder / "profile"
        self.profile.mkdir(exist_ok=True)
        self.driver = Process(self.host, ["chromedriver", f"--port={PORT}"], self.log_file,
                              env={"HOME": str(self.profile)})
        try:
            wait_until(self._listens, "chromedriver listens", 20)
            options = {"args": [*FLAGS, f"--user-data-dir={self.profile}"], "binary": "/usr/bin/chromium",
                       "perfLoggingPrefs": {"enableNetwork": True, "enablePage": False}}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                      "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
            self.session = ""
            self.session = self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except BaseException:
            self.driver.stop()
            raise
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", "")
        finally:
            self.driver.stop()

    def _listens(self):
        try:
            self.host.connect("127.0.0.1", PORT, 1).close()
            return True
        except OSError:
            return False

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        connection.sock = self.host.connect("127.0.0.1", PORT, 60)
        try:
            address = "/session" + (f"/{self.session}" if self.session else "") + path
            connection.request(method, address, json.dumps(body if body is not None else {}) if method == "POST" else None)
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(f"{path}: {value['error']}: {value['message'].splitlines()[0]}")
        return value

    def open(self, address):
        self._call("POST", "/url", {"url": address})

    def run(self, script, *arguments):
        """The value of a JavaScript function's body; it finds its arguments in `arguments`."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def press(self, key):
        value = KEYS[key]
        actions = [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def picture(self, path=None):
        data = base64.b64decode(self._call("GET", "/screenshot"))
        if path:
            path.write_bytes(data)
        return data

    def size(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, **features):
        """As prefers_color_scheme="dark"."""
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def new_tab(self):
        """Opens another tab in front; returns the one that was."""
        before = self._call("GET", "/window")
        self.show_tab(self._call("POST", "/window/new", {"type": "tab"})["handle"])
        return before

    def show_tab(self, handle):
        self._call("POST", "/window", {"handle": handle})

    def close_tab(self):
        self._call("DELETE", "/window")

    def collect(self):
        """Takes what was logged since into `requests` and `complaints`; returns the new ones of each."""
        requests, complaints = [], []
        for entry in self._call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                requests.append(message["params"]["request"]["url"])
        for entry in self._call("POST", "/se/log", {"type": "browser"}):
            if entry["level"] in ("WARNING", "SEVERE"):
                complaints.append(entry["message"])
        self.requests += requests
        self.complaints += complaints
        return requests, complaints
