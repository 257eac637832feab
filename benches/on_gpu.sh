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

for tool in memcheck racecheck synccheck; do
    echo "== compute-sanitizer $tool"
    timeout 240 compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$bundle/tests/conformance" cuda0 --test-threads 1 >"$out/$tool.txt" 2>&1 || status=1
    grep -E '^test result|FAILED|ERROR SUMMARY|RACECHECK SUMMARY' "$out/$tool.txt" | sort | uniq -c
done

echo "== against CUDA C++"
nvcc -O3 -arch=native benches/cuda/baseline.cu -o "$bundle/baseline" -lcuda &&
    chmod +x "$bundle"/benches/* &&
    python3 benches/compare.py "$bundle/benches/gpu" "$bundle/baseline" "$out/gpu.json" || status=1

echo "status $status"
exit $status
