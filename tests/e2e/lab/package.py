"""kubelane as a Debian package."""

import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[3]


def pack(build, folder, version):
    """Packs the kubelane that was built in `build`; the package's path, in `folder`."""
    done = subprocess.run([SOURCE / "packaging/pack", build, "--version", version], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(done.stdout)
    return pathlib.Path(shutil.copy2(done.stdout.splitlines()[-1], folder))
