"""Compiles many mutants into one program: an environment variable selects the one that a process executes.

A function that has mutants gets its body once for each, and once as it is, and chooses at its beginning:

    fn f(x: u32) -> u32 { match CHOICE { 17 => { x - 1 } 18 => { 0 } _ => { x + 1 } } }

So tests are built once for all mutants, not once for each. Mutants that cannot be woven in this way are left to the runner that builds mutants one by
one: constant functions, which read no variable, and those that return an `impl Trait`, whose type would be another in each arm.
"""

import json
import os
import re
import subprocess

VARIABLE = "FERROGRID_TEST_MUTANT"
# Uses no std, allocations or locks, because kernels, allocators and loom's models have mutants too.
CHOICE = (
    '{ static CHOICE: ::core::sync::atomic::AtomicI32 = ::core::sync::atomic::AtomicI32::new(-1);'
    ' let mut choice = CHOICE.load(::core::sync::atomic::Ordering::Relaxed);'
    ' if choice < 0 { unsafe extern "C" { fn getenv(name: *const u8) -> *const u8; fn atoi(text: *const u8) -> i32; }'
    f' let text = unsafe {{ getenv(b"{VARIABLE}\\0".as_ptr()) }};'
    ' choice = if text.is_null() { 0 } else { unsafe { atoi(text) } };'
    ' CHOICE.store(choice, ::core::sync::atomic::Ordering::Relaxed); } choice }'
)
# Rust comments, literals and lifetimes, whose braces do not count.
OPAQUE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|[bc]?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n']*'?|[^\\\n'])'|'\w+""",
    re.DOTALL | re.VERBOSE,
)


def offset(starts, place):
    return starts[place["line"] - 1] + place["column"] - 1


def line_starts(text):
    return [0] + [at + 1 for at, char in enumerate(text) if char == "\n"]


def body_start(text, begin, end):
    """The position of the brace that `end` closes; None if the function has no body."""
    depth_at = []
    at = begin
    while at < end:
        opaque = OPAQUE.match(text, at)
        if opaque and opaque.end() > at:
            at = opaque.end()
            continue
        if text[at] == "{":
            depth_at.append(at)
        elif text[at] == "}":
            opened = depth_at.pop()
            if at == end - 1:
                return opened
        at += 1
    return None


def can_be_woven(text, function):
    """Whether a body can be split into arms; `function` is (begin, end) in the text."""
    opened = body_start(text, *function)
    if opened is None:
        return False
    signature = OPAQUE.sub(" ", text[function[0]:opened])
    before_name = re.split(r"\bfn\b", signature, maxsplit=1)[0]
    returned = signature.rsplit("->", 1)[1] if "->" in signature else ""
    return "const" not in before_name.split() and not re.search(r"\bimpl\b", returned)


def places(text, mutant):
    starts = line_starts(text)
    function = mutant["function"]["span"]
    return ((offset(starts, function["start"]), offset(starts, function["end"])),
            (offset(starts, mutant["span"]["start"]), offset(starts, mutant["span"]["end"])))


def weavable(clone, mutants):
    """The mutants that can be compiled together."""
    chosen, by_file = [], {}
    for mutant in mutants:
        if mutant["function"]:
            by_file.setdefault(mutant["file"], []).append(mutant)
    for file, of_file in by_file.items():
        text = (clone / file).read_text()
        functions = {places(text, mutant)[0] for mutant in of_file}
        for mutant in of_file:
            own = places(text, mutant)[0]
            has_inner = any(own != other and own[0] <= other[0] and other[1] <= own[1] for other in functions)
            if not has_inner and can_be_woven(text, own):
                chosen.append(mutant)
    return chosen


def woven(text, mutants):
    """The text with arms for these mutants, a dictionary keyed by number."""
    by_function = {}
    for number, mutant in mutants.items():
        function, span = places(text, mutant)
        by_function.setdefault(function, []).append((number, span, mutant["replacement"]))
    for (begin, end), of_function in sorted(by_function.items(), reverse=True):
        opened = body_start(text, begin, end)
        body = text[opened:end]
        arms = ""
        for number, (first, last), replacement in of_function:
            changed = text[opened:first] + f" {replacement} " + text[last:end]
            arms += f"\n/*ARM {number}*/ {number} => {changed}\n/*END*/"
        # Negative: shared by all mutants.
        numbers = " ".join(str(-number) for number, *_ in of_function)
        text = f"{text[:opened]}{{ match {CHOICE} {{{arms}\n/*ARM {numbers}*/ _ => {body}\n/*END*/ }} }}{text[end:]}"
    return text


def arms_by_line(text):
    """For each line of a woven text the number of the mutant whose arm contains it; negative in unchanged text, which all share."""
    lines, within = [], []
    for line in text.split("\n"):
        begun = re.match(r"/\*ARM ([-\d ]+)\*/", line)
        within = [int(number) for number in begun[1].split()] if begun else [] if line.startswith("/*END*/") else within
        lines.append(within)
    return lines


def write(clone, originals, mutants):
    """Weaves these mutants, and no others, into the clone's files."""
    for file, text in originals.items():
        mine = {number: mutant for number, mutant in mutants.items() if mutant["file"] == file}
        result = woven(text, mine)
        if (clone / file).read_text() != result:
            (clone / file).write_text(result)


def refused(clone, stage_arguments, variables):
    """Builds tests. Returns the mutants whose arms rustc rejects, those of functions whose last arm it rejects, and other
    errors."""
    command = ["cargo", "test", "--no-run", "--message-format=json", *stage_arguments]
    result = subprocess.run(command, cwd=clone, env=os.environ | variables, capture_output=True, text=True)
    own, shared, other = set(), set(), []
    for line in result.stdout.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") != "compiler-message" or message["message"]["level"] != "error":
            continue
        found = []
        for span in message["message"]["spans"]:
            path = clone / span["file_name"]
            if span["is_primary"] and path.exists():
                found.append(arms_by_line(path.read_text())[span["line_start"] - 1])
        for arm in found:
            (own if len(arm) == 1 and not arm[0] < 0 else shared).update(abs(number) for number in arm)
        if message["message"]["spans"] and not any(found):
            other.append(message["message"]["rendered"])
    if result.returncode and not own and not shared:
        other.append(result.stderr[-3000:])
    return own, shared - own, other


def compile_all(clone, mutants, stages):
    """Leaves the clone with all of these mutants that compile, built for the stages. Returns the original texts, the mutants by
    number, those that do not compile, and those that may compile alone. A stage is arguments of `cargo test` and variables."""
    numbered = dict(enumerate(mutants, start=1))
    originals = {mutant["file"]: (clone / mutant["file"]).read_text() for mutant in mutants}
    unviable, alone = [], []
    for arguments, variables in stages:
        while True:
            write(clone, originals, numbered)
            own, shared, other = refused(clone, arguments, variables)
            if not own and not shared:
                if other:
                    write(clone, originals, {})
                    raise SystemExit(f"woven mutants do not build: cargo test {' '.join(arguments)}\n" + "\n".join(other))
                break
            print(f"of {len(numbered)}, {len(own)} do not compile, {len(shared)} not together", flush=True)
            unviable += [numbered.pop(number) for number in sorted(own) if number in numbered]
            alone += [numbered.pop(number) for number in sorted(shared) if number in numbered]
    return originals, numbered, unviable, alone
