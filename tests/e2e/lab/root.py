"""A Debian root with systemd, made once and kept outside the tree; each container works on an overlay of it."""

import hashlib
import os
import pathlib
import shutil
import subprocess

SUITE = "bookworm"
PACKAGES = ["systemd", "systemd-sysv", "dbus", "libssl3", "libyaml-cpp0.7", "libyaml-0-2", "libspdlog1.10",
            "libboost-json1.81.0"]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "kubelane"


def make(*further):
    """Returns the path of the root, with these packages too; takes a minute the first time."""
    packages = [*PACKAGES, *further]
    key = hashlib.sha256(" ".join([SUITE, *packages]).encode()).hexdigest()[:12]
    path = CACHE / f"systemd-root-{key}"
    if path.exists():
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    unfinished = CACHE / f"systemd-root-{key}.{os.getpid()}"
    print(f"making {path}", flush=True)
    try:
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", SUITE,
                        unfinished], check=True)
        unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return path


class Overlay:
    """A root that can be written to; what is written goes away with the `with` block."""

    def __init__(self, lower, folder):
        self.lower, self.folder = lower, folder
        self.path = folder / "root"

    def __enter__(self):
        for name in ("root", "upper", "work"):
            (self.folder / name).mkdir(parents=True)
        options = f"lowerdir={self.lower},upperdir={self.folder}/upper,workdir={self.folder}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, self.path], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", self.path], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
