"""Images of one program: what a pod on the worker needs beside kubelane."""

import pathlib
import shutil
import subprocess

from worker import PAUSE

PAUSE_PROGRAM = """
#include <csignal>
#include <unistd.h>
int main() {
  std::signal(SIGTERM, [](int) { _exit(0); });
  for (;;) pause();
}
"""


def pause(folder):
    root = folder / "root"
    root.mkdir(parents=True)
    subprocess.run(["c++", "-std=c++20", "-Os", "-static", "-x", "c++", "-", "-o", root / "pause"], input=PAUSE_PROGRAM,
                   text=True, check=True)
    return pack(folder, PAUSE, 'ENTRYPOINT ["/pause"]')


def pack(folder, name, entry):
    """An image of `folder`/root and nothing else."""
    archive = folder / "image.tar"
    (folder / "Containerfile").write_text(f"FROM scratch\nCOPY . /\n{entry}\n")
    buildah = ["buildah", "--storage-driver", "vfs", "--root", folder / "storage", "--runroot", folder / "runs"]
    for command in ([*buildah, "bud", "--quiet", "--isolation", "chroot", "--layers=false", "--tag", name,
                     "--file", folder / "Containerfile", folder / "root"],
                    [*buildah, "push", "--quiet", name, f"docker-archive:{archive}:{name}"]):
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    shutil.rmtree(folder / "storage")
    return archive


def libraries(program):
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [word for line in listed.splitlines() for word in line.split() if word.startswith("/")]


def copy(file, root):
    target = root / pathlib.Path(file).relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)
