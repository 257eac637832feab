"""What both runners of mutants share: the clone that they change, and how they write what came out."""

import csv
import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

# Seconds; a mutant that loops is noticed by the second.
BUILD_LIMIT, TEST_LIMIT = 900, 300

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


@contextmanager
def changed(path, text):
    """The file has another text meanwhile."""
    before = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


def succeeds(clone, arguments, limit, variables):
    """Whether cargo does, in time."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # A group of its own, of which nothing goes on after the limit.
    process = subprocess.Popen(["cargo", *arguments], cwd=clone, env=os.environ | variables, start_new_session=True, **silent)
    try:
        return process.wait(limit) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def outcome(clone, stages):
    """Whether a stage of tests notices what is changed in the clone; a stage is what `cargo test` is told, after variables."""
    for stage in stages:
        words = stage.split()
        variables = dict(word.split("=", 1) for word in words if "=" in word) | {"CARGO_PROFILE_DEV_DEBUG": "0"}
        arguments = ["test", "--quiet", *(word for word in words if "=" not in word)]
        of_cargo = arguments[: arguments.index("--")] if "--" in arguments else arguments
        # Examples of the documentation are built as they run; another stage has built the crate before.
        if "--doc" not in words and not succeeds(clone, [*of_cargo, "--no-run"], BUILD_LIMIT, variables):
            return "unviable"
        if not succeeds(clone, arguments, TEST_LIMIT, variables):
            return "caught"
    return "missed"


def record(path, row):
    """Adds a row to a result, with the names of its columns before the first."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)
