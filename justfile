# Daily commands; `just NAME`. CONTRIBUTING.md lists the tests of each folder.

_default:
    @just --list

# Tests of the language, the runtime and the examples, after setting up what is missing
test:
    cargo ferrogrid test

# All tests
test-all:
    cargo ferrogrid test --workspace

# Runs an example, optimised
run example="saxpy":
    cargo ferrogrid run {{example}}

# Format, spelling and lints, as in CI
lint:
    sh .ci/lint

# Cases of the conformance suite whose name contains it, on the CPU device
case name:
    cargo test --quiet -p ferrogrid-tests --test conformance -- cpu::{{name}}

# The same of device-wide algorithms
algorithm name:
    cargo test --quiet -p ferrogrid-algorithms-tests --test algorithms -- cpu::{{name}}

# UI tests whose path contains it
ui pattern:
    cargo test --quiet -p ferrogrid --test ui mistakes -- trybuild={{pattern}}

# All checks that must pass at every commit
ci:
    .ci/run

# Tests, examples and benches for a machine with a GPU
bundle:
    cargo ferrogrid bundle

# Version, changelog, commit and tag of a release, e.g. `just release 0.2.0`
release version:
    .ci/release {{version}}

# Licences and sources of dependencies
deny:
    sh .ci/deny

# Renews everything that tests compare with: listings and expansions in the book, expected compile errors, shapes of JSON
renew:
    FERROGRID_RENEW_LISTINGS=1 cargo test --quiet -p ferrogrid-book --test chapters
    FERROGRID_RENEW_EXPANSIONS=1 cargo test --quiet -p ferrogrid-macros-tests book
    TRYBUILD=overwrite cargo test --quiet -p ferrogrid --test ui
    FERROGRID_RENEW_GOLDEN=1 cargo test --quiet -p cargo-ferrogrid -p ferrogrid-bench
