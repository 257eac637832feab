"""What both runners of mutants share: the clone that they change, and how they write what came out."""

import csv
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def output(*command, text=True):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=text).stdout


def renewed_clone(name):
    """A clone at this checkout's commit, with the changes of files that git knows, and the name of that state. What is built
    stays, since files keep their time where nothing changes in them."""
    clone = ROOT / "target/mutants" / name
    if not clone.exists():
        output("git", "clone", "--quiet", "--shared", ROOT, clone)
    head = output("git", "rev-parse", "HEAD").strip()
    output("git", "-C", clone, "reset", "--quiet", "--hard")
    output("git", "-C", clone, "fetch", "--quiet", ROOT, "HEAD")
    output("git", "-C", clone, "checkout", "--quiet", "--detach", head)
    changes = output("git", "diff", "--binary", "HEAD", text=False)
    subprocess.run(["git", "-C", clone, "apply", "--allow-empty"], input=changes, check=True)
    return clone, head[:12] + ("+" if changes else "")


def record(path, row):
    """Adds a row to a result, with the names of its columns before the first."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)
