"""The clone that both mutation runners change, and the format of their results."""

import csv
import os
import re
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

# Time limits in seconds; the second one catches mutants that loop forever.
BUILD_LIMIT, TEST_LIMIT = 900, 300

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def output(*command, text=True):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=text).stdout


def renewed_clone(name):
    """A clone at this checkout's commit with the uncommitted changes of tracked files, and the name of that state. Builds remain
    valid, because unchanged files keep their modification times."""
    clone = ROOT / "target/mutants" / name
    if not clone.exists():
        output("git", "clone", "--quiet", "--shared", ROOT, clone)
    head = output("git", "rev-parse", "HEAD").strip()
    output("git", "-C", clone, "reset", "--quiet", "--hard")
    output("git", "-C", clone, "clean", "--quiet", "--force", "-d")
    output("git", "-C", clone, "fetch", "--quiet", ROOT, "HEAD")
    output("git", "-C", clone, "checkout", "--quiet", "--detach", head)
    changes = output("git", "diff", "--binary", "HEAD", text=False)
    subprocess.run(["git", "-C", clone, "apply", "--allow-empty"], input=changes, check=True)
    return clone, head[:12] + ("+" if changes else "")


def use_target_of(clone):
    """Builds into a target directory inside the clone: cargo identifies the packages of two clones with each other, so a build with
    mutants would count as fresh in the other."""
    os.environ["CARGO_TARGET_DIR"] = f"{clone}-target"


@contextmanager
def changed(path, text):
    """Replaces the file's text for the duration."""
    before = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


def noticed(clone, arguments, limit, variables):
    """The reason why cargo fails or exceeds its time limit: the name of a test, if a test fails. None if cargo succeeds."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        # A separate process group, killed as a whole at the limit.
        process = subprocess.Popen(["cargo", *arguments], cwd=clone, env=os.environ | variables, start_new_session=True,
                                   stdout=said, stderr=subprocess.DEVNULL)
        try:
            if process.wait(limit) == 0:
                return None
        except subprocess.TimeoutExpired:
            return f"no end in {limit:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        said.seek(0)
        return failed(said.read(), process.returncode)


def failed(said, status):
    """The first test that failed according to the test program's output."""
    names = re.findall(r"^    (\S.*)$", said.rpartition("\nfailures:\n")[2], re.MULTILINE)
    return names[0] if names else f"status {status}"


def parsed(stage):
    """Splits a stage (variables, then arguments of `cargo test`) into the arguments, those of a build, and the variables."""
    words = stage.split()
    variables = dict(word.split("=", 1) for word in words if "=" in word) | {"CARGO_PROFILE_DEV_DEBUG": "0"}
    arguments = [word for word in words if "=" not in word]
    return arguments, arguments[: arguments.index("--")] if "--" in arguments else arguments, variables


def outcome(clone, stages, crate=None):
    """Whether a stage of tests detects the change in the clone, and by which test. A change is unviable if `crate`, which has it,
    does not compile; if only its users do not, they have detected it."""
    for stage in stages:
        arguments, of_cargo, variables = parsed(stage)
        # Doctests are built as they run; an earlier stage has built the crate.
        if "--doc" not in arguments:
            if noticed(clone, ["test", "--quiet", *of_cargo, "--no-run"], BUILD_LIMIT, variables):
                compiles = crate and not noticed(clone, ["build", "--quiet", "-p", crate], BUILD_LIMIT, variables)
                return ("caught", f"build of {stage}") if compiles else ("unviable", "")
        by = noticed(clone, ["test", "--quiet", *arguments], TEST_LIMIT, variables)
        if by:
            return "caught", by
    return "missed", ""


def record(path, row):
    """Appends a row to a result file, after a header if the file is new."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)
