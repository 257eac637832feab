#!/bin/sh
# Everything that is run on a GPU machine without Rust, in one go: the bundled tests and examples,
# the same tests under compute-sanitizer, and the comparison with CUDA C++.
# Before: `cargo ferrogrid bundle`. Then there: sh benches/on_gpu.sh bundle OUTPUT_FOLDER
set -u
bundle=$1
out=$2
status=0
mkdir -p "$out"

echo "== tests and examples"
sh "$bundle/run.sh" >"$out/tests.txt" 2>&1 || status=1
grep -E '^(==|PASS|FAILED|error|test result|[0-9]+ passed)' "$out/tests.txt"

# Two cases fail on purpose: one asks for more memory than there is (an API error), one traps in a process
# of its own. So API errors are left out, and so are other processes.
for tool in memcheck racecheck synccheck; do
    for program in conformance "saxpy 1000000" vector_add mandelbrot; do
        path=$(ls "$bundle"/*/"${program%% *}")
        arguments=$(echo "$program" | cut -s -d' ' -f2-)
        [ "$program" = conformance ] && arguments="cuda0 --test-threads 1"
        log="$out/$tool-${program%% *}.txt"
        # shellcheck disable=SC2086
        timeout 240 compute-sanitizer --tool "$tool" --error-exitcode 9 --report-api-errors no \
            --target-processes application-only "$path" $arguments >"$log" 2>&1 || status=1
        echo "$tool ${program%% *}: $(grep -E 'SUMMARY|^test result|^PASS' "$log" | tr '\n' ' ')"
    done
done | tee "$out/sanitizer.txt"
grep -E 'SUMMARY' "$out/sanitizer.txt" | grep -qv -E 'SUMMARY: 0 (errors|hazards)' && status=1

echo "== against CUDA C++"
nvcc -O3 -arch=native benches/cuda/baseline.cu -o "$bundle/baseline" -lcuda &&
    chmod +x "$bundle"/benches/* &&
    python3 benches/compare.py "$bundle/benches/gpu" "$bundle/baseline" "$out/gpu.json" || status=1

echo "status $status"
exit $status
