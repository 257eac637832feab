# Daily commands; `just NAME`. CONTRIBUTING.md says which test concerns which folder.

_default:
    @just --list

# All tests, after setting up what is missing
test:
    cargo ferrogrid test

# Runs an example, optimised
run example="saxpy":
    cargo ferrogrid run {{example}}

# Format, spelling and lints, as CI has them
lint:
    cargo fmt --all --check
    .ci/typos
    cargo clippy --workspace --all-targets --features ferrogrid-examples/jit,ferrogrid-book/jit,ferrogrid-host/nvml --quiet -- -D warnings

# One case of the conformance suite, or those whose name has it, on the CPU device
case name:
    cargo test --quiet -p ferrogrid-tests --test conformance -- cpu::{{name}}

# UI tests whose path has it
ui pattern:
    cargo test --quiet -p ferrogrid --test ui mistakes -- trybuild={{pattern}}

# What must hold at every commit
ci:
    .ci/run

# Tests, examples and benches for a machine with a GPU
bundle:
    cargo ferrogrid bundle
