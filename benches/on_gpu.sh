#!/bin/sh
# Runs on a GPU machine without Rust: the bundled tests and examples, the same tests under compute-sanitizer, the
# comparisons with CUDA C++, and the CPU device's benches. Make a bundle first (`cargo ferrogrid bundle`), then run there:
#   sh benches/on_gpu.sh BUNDLE OUTPUT_FOLDER [PART..]     parts: tests sanitizers memcheck_examples stress kernels
#   runtime algorithms products math cpu; without PART all of these. On request only: `nccl`, collective operations and training steps of
#   several GPUs; `nccl_sanitizers`, tests of ranks under compute-sanitizer; `tunings`, the best numbers for algorithms on this GPU;
#   `soak`, random work with failures on all devices at once for half an hour or FERROGRID_SOAK_SECONDS; `lost_waits` and `nested_loops`,
#   tests of the driver and of compute-sanitizer alone.
set -u
bundle=$(realpath "$1")
out=$(realpath -m "$2")
shift 2
parts=${*:-tests sanitizers memcheck_examples stress kernels runtime algorithms products math cpu}
status=0
mkdir -p "$out/logs"
chmod +x "$bundle"/tests/* "$bundle"/examples/* "$bundle"/benches/*

tests() {
    sh "$bundle/run.sh" >"$out/logs/tests.txt" 2>&1 || status=1
    grep -E '^(FAILED|error|test result)' "$out/logs/tests.txt"
    sed -n '/^program  .*seconds/,$p' "$out/logs/tests.txt" | tee "$out/gallery.txt"
}

# By default compute-sanitizer reports every driver call that fails. These cases make calls fail on purpose: they ask for
# memory, addresses, shared memory, threads, blocks or clusters beyond every GPU's limits, for functions, parameters and
# variables that the module lacks, load PTX that does not compile, or pass an invalid attribute or handle. They run
# without such reports.
refused="impossible_page_locked_memory_is_refused more_memory_than_there_is_is_a_typed_error \
    more_blocks_than_can_wait_are_refused_with_the_limit clusters_of_sixteen_blocks_run_or_are_refused \
    too_many_threads_in_a_block_are_refused a_kernel_with_a_thread_limit_keeps_it a_device_reports_its_properties \
    foreign_arguments_are_checked foreign_launches_are_cooperative_if_asked foreign_launches_form_clusters \
    foreign_shared_memory_is_opted_in_to foreign_variables_are_read_and_written \
    a_foreign_kernel_has_the_same_questions ptx_that_does_not_load_is_explained wrong_ipc_handles_are_refused \
    a_suggested_block_fills_the_device_and_runs cuda_cpp_templates_are_found_by_their_expressions \
    occupancy_by_the_rules_is_that_of_the_driver modules_of_the_driver_are_launched \
    a_launch_asks_for_clusters_that_the_kernel_takes a_buffer_that_cannot_grow_keeps_its_elements \
    memory_that_cannot_hold_a_value_is_named more_memory_than_there_is_cannot_be_allocated"

# Child processes are not checked: one traps on purpose. racecheck sometimes loses track of concurrent launches from several
# threads ("Internal Sanitizer Error") and hangs, so it skips those cases. Under a sanitizer the driver accepts a truncated
# program that it rejects otherwise, so that case is skipped too.
#
# sanitize "TOOL OPTION.." NAME PROGRAM ARGUMENT..
sanitize() {
    checker=$1
    name=$2
    shift 2
    log="$out/logs/${checker%% *}-$name.txt"
    # shellcheck disable=SC2086 # the tool's options are separate words
    timeout -k 5 300 compute-sanitizer --tool $checker --error-exitcode 9 --target-processes application-only "$@" >"$log" 2>&1
    code=$?
    echo "${checker%% *} $name: exit $code, $(grep -E 'SUMMARY|^test result|^PASS' "$log" | tr '\n' ' ')"
    [ "$code" -eq 0 ] || status=1
}

# The suite's cases except SKIPPED, each in its own process, as many at a time as there are processors. The cases that
# compare the device's free memory would see the other processes' allocations. Under a sanitizer, a loop within a loop of a
# graph failed in some runs on one machine, in plain C++ too (`nested_loops` below). CASES may name a file that lists the cases to run.
#
# sanitize_cases TOOL SKIPPED..
sanitize_cases() {
    tool=$1
    shift
    skipped="linked_programs_run as_much_memory_as_before loses_none_and_no_memory random_work_of_many_threads loops_in_loops $*"
    mkdir -p "$out/logs/$tool"
    for program in conformance algorithms; do
        "$bundle/tests/$program" --list 2>/dev/null | sed -n "s/^\(cuda0::.*\): test$/$program \1/p"
    done |
        grep -v -F "$(echo "$skipped" | tr ' ' '\n')" | grep -E "::($(paste -sd'|' "${CASES:-/dev/null}" | grep . || echo '.*'))\$" |
        BUNDLE=$bundle LOGS=$out/logs/$tool TOOL=$tool REFUSED=$refused xargs -P "$(nproc)" -L 1 sh -c '
            name=${1##*::}
            errors=
            case " $REFUSED " in *" $name "*) errors="--report-api-errors no" ;; esac
            timeout -k 5 300 compute-sanitizer --tool "$TOOL" --error-exitcode 9 $errors \
                --target-processes application-only "$BUNDLE/tests/$0" --exact "$1" >"$LOGS/$name.txt" 2>&1
            echo "$? $1"' >"$out/logs/$tool-cases.txt"
    echo "$tool: $(grep -c '^0 ' "$out/logs/$tool-cases.txt") of $(wc -l <"$out/logs/$tool-cases.txt") cases without a report"
    grep -v '^0 ' "$out/logs/$tool-cases.txt" | while read -r code case; do
        echo "$tool $case: exit $code"
        grep -E '^========= [A-Z]|panicked|^---- ' -A2 "$out/logs/$tool/${case##*::}.txt" | head -12
    done
    grep -q -v '^0 ' "$out/logs/$tool-cases.txt" && status=1
}

# Only memcheck leaves the times of launches comparable. initcheck makes launches wait for
# their end: the cases that hold a stream on purpose then leave themselves out. It takes what the loading of a module has
# written for never written, so of constants and statics it watches kernels alone; and it takes memory of the device for itself.
sanitizers() {
    # The driver compiles the suite's kernels for a minute, and keeps the result for the processes that follow.
    "$bundle/tests/conformance" cuda0::stages_take_turns_for_any_number_of_rounds >"$out/logs/compiled.txt" 2>&1
    for tool in ${SANITIZERS:-memcheck racecheck synccheck initcheck}; do
        FERROGRID_CONFORMANCE_SYNCHRONOUS=0
        [ "$tool" = initcheck ] && FERROGRID_CONFORMANCE_SYNCHRONOUS=1
        export FERROGRID_CONFORMANCE_SYNCHRONOUS
        case $tool in
        racecheck) sanitize_cases racecheck many_threads with_times_of_the_device ;;
        synccheck) sanitize_cases synccheck with_times_of_the_device ;;
        initcheck)
            # After a panic, later kernels of a sort, and the copy of padded results, read what was not written.
            sanitize_cases initcheck constants static with_times_of_the_device offsets_of_sorted_segments_are_checked \
                a_panic_of_a_function_of_sums_is_an_error
            for variables in constants static; do
                sanitize "initcheck --check-api-memory-access no" $variables "$bundle/tests/conformance" $variables --test-threads 1
            done
            ;;
        # With a lane that has ended, memcheck reports what that lane's register has as an address of `ldmatrix`. The hardware ignores it
        # (tried on an H200 with addresses beyond shared memory).
        *) sanitize_cases "$tool" a_panic_of_one_lane_before_products ;;
        esac
    done
}

memcheck_examples() {
    for example in "$bundle"/examples/*; do
        name_of_example=$(basename "$example")
        case $name_of_example in
        # They show errors of the linker or the device.
        linking | pitfalls) sanitize "memcheck --report-api-errors no" "$name_of_example" "$example" ;;
        *) sanitize memcheck "$name_of_example" "$example" ;;
        esac
    done
}

# Random operations of eight threads and four streams, compared with a model, and a million allocations.
stress() {
    suite="$bundle/tests/conformance"
    for device in cuda0 cpu; do
        FERROGRID_STRESS=100000 "$suite" "$device::random_launches" >>"$out/logs/stress.txt" 2>&1 || status=1
        FERROGRID_SOAK=1000000 "$suite" "$device::after_many" >>"$out/logs/stress.txt" 2>&1 || status=1
    done
    # Other processes may use the GPU at the same time.
    for process in 1 2 3; do
        FERROGRID_STRESS=100000 "$suite" cuda0::random_launches >"$out/logs/stress-$process.txt" 2>&1 &
    done
    wait
    [ "$(cat "$out"/logs/stress-?.txt | grep -c '^test result: ok')" -eq 3 ] || status=1
    grep -hE '^test ' "$out"/logs/stress*.txt
    FERROGRID_STRESS=10000 sanitize memcheck stress "$bundle/tests/conformance" cuda0::random_launches
}

# Random work on the GPU and the CPU devices at once, with one kernel in 1000 failing on purpose. Its JSON line is soak.json.
soak() {
    FERROGRID_SOAK_SECONDS=${FERROGRID_SOAK_SECONDS:-1800} FERROGRID_SOAK_RESULT="$out/soak.json" \
        "$bundle/tests/conformance" cuda0::random_work_with_failures >"$out/logs/soak.txt" 2>&1 || status=1
    cat "$out/soak.json" || grep -E 'FERROGRID_|seed|panicked' "$out/logs/soak.txt"
}

# Tests whether the driver still loses waits, in four processes at once.
lost_waits() {
    nvcc -O2 -std=c++17 -o "$out/lost_waits" benches/cuda/lost_waits.cu -lcuda || { status=1; return; }
    for how in free apart; do
        for process in 1 2 3 4; do
            timeout 60 "$out/lost_waits" $how >"$out/logs/lost_waits-$how-$process.txt" 2>&1 &
        done
        wait
        echo "waits and graphs on one stream, $how: $(cat "$out/logs/lost_waits-$how"-?.txt | grep -c passed) of 4 passed"
    done
    rm -f "$out/lost_waits"
}

# Tests whether loops within loops of graphs run under memcheck.
nested_loops() {
    nvcc -O2 -arch=native -o "$out/nested_loops" benches/cuda/nested_loops.cu || { status=1; return; }
    for how in "" "compute-sanitizer --tool memcheck"; do
        passed=0
        for _ in $(seq 20); do
            # shellcheck disable=SC2086 # words of their own
            timeout 60 $how "$out/nested_loops" | grep -q passed && passed=$((passed + 1))
        done
        echo "loops within loops, ${how:-alone}: $passed of 20 passed"
    done
    rm -f "$out/nested_loops"
}

kernels() {
    nvcc -O3 -arch=native -cubin benches/cuda/kernels.cu -o "$out/kernels.cubin" &&
        python3 benches/compare.py "$bundle/benches/gpu" "$out/kernels.cubin" "$out/gpu" || status=1
}

# Runs a bench beside CUDA C++: its name, the source, the bar for the ratio of times (empty for those in benches/runtime.py), flags of nvcc.
beside() {
    bench=$1 source=$2 bar=$3
    shift 3
    # shellcheck disable=SC2086 # no word if empty
    nvcc -O3 -arch=native -shared -Xcompiler -fPIC "benches/cuda/$source" -o "$out/lib$bench.so" "$@" &&
        python3 benches/runtime.py "$bundle/benches/$bench" "$out/lib$bench.so" "$out/$bench" $bar || status=1
    rm -f "$out/lib$bench.so"
}

runtime() {
    beside runtime runtime.cu "" -ldl
}

algorithms() {
    beside algorithms cub.cu 1.05 -std=c++17
}

products() {
    beside products cublas.cu 1.67 -lcublas -lcublasLt
}

# nccl_test SECONDS THREADS FILTER: the tests of ranks with that name on all GPUs, which are to end in that time.
nccl_test() {
    log="$out/nccl-$3.txt"
    timeout -k 5 "$1" "$bundle/tests/ranks" --nocapture --test-threads "$2" "$3" >"$log" 2>&1
    code=$?
    grep -hoE 'FERROGRID_STRESS_SEED=.*|^[0-9]+ operations .*|rank [01] killed, turn .*|.*panicked.*' "$log"
    echo "$(grep -E '^test result' "$log" || echo "no result of $3"), exit $code"
    [ "$code" -eq 0 ] || status=1
}

# Ranks on two GPUs or more: examples, 10,000 random operations against a model, 20 killed ranks, training steps, and collective
# operations beside NCCL called from C++. FERROGRID_NCCL names the folder with NCCL. NVLink multicast is off unless NCCL_NVLS_ENABLE is set.
nccl() {
    export NCCL_NVLS_ENABLE="${NCCL_NVLS_ENABLE:-0}" FERROGRID_TEST_RANKS=cuda
    for example in data_parallel heat distributed_sort; do
        timeout -k 5 30 "$bundle/examples/$example" >>"$out/nccl-examples.txt" 2>&1 || status=1
    done
    cat "$out/nccl-examples.txt"
    FERROGRID_TEST_COLLECTIVES=${FERROGRID_TEST_COLLECTIVES:-10000} nccl_test 110 1 random_operations
    timeout -k 5 90 python3 benches/nccl.py training "$bundle/benches/training" "$out/training" || status=1
    nvcc -O3 -shared -Xcompiler -fPIC benches/cuda/nccl.cu -o "$out/libnccl_bench.so" -ldl &&
        timeout -k 5 180 python3 benches/nccl.py collectives "$bundle/benches/nccl" "$out/libnccl_bench.so" "$out/nccl" || status=1
    rm -f "$out/libnccl_bench.so"
    # A test for each of two ranks. They wait most of the time.
    FERROGRID_TEST_KILLS=10 FERROGRID_TEST_TIMEOUT=${FERROGRID_TEST_TIMEOUT:-8} nccl_test 170 2 killed
    echo "killed ranks that were an error of the other: $(grep -c 'killed, turn .*: lost after' "$out/nccl-killed.txt") of 20"
}

# Tests of ranks on two GPUs under compute-sanitizer. NCCL makes calls on trial that the driver refuses: they are not reported. Not under initcheck: it
# does not see what the other GPU writes, and windows cannot be registered.
nccl_sanitizers() {
    export NCCL_NVLS_ENABLE="${NCCL_NVLS_ENABLE:-0}" FERROGRID_TEST_RANKS=cuda
    for case in order::ranks_of_several_threads graphs::ranks_of_several_threads_record_alone \
        order::operations_are_ordered_with_work_on_other_streams collectives::operations_in_place_match_those_that_are_not \
        registered::registered_buffers_are_buffers_of_operations_and_graphs symmetric::symmetric_buffers_are_buffers_of_operations_and_graphs \
        symmetric::ranks_of_several_threads_make_symmetric_buffers; do
        sanitize "memcheck --report-api-errors no" "${case##*:}" "$bundle/tests/ranks" --exact "$case"
        sanitize racecheck "${case##*:}" "$bundle/tests/ranks" --exact "$case"
        sanitize synccheck "${case##*:}" "$bundle/tests/ranks" --exact "$case"
    done
}

# Writes the table of tunings with the best numbers for this GPU, and the record of all times.
tunings() {
    FERROGRID_BENCH_COMMIT=${FERROGRID_BENCH_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)} \
        "$bundle/benches/tunings" "$out" >"$out/tunings.txt" 2>&1 || status=1
    cat "$out/tunings.txt"
}

math() {
    "$bundle/benches/math_errors" --all --device cuda --out "$out/math-errors.csv" || status=1
}

cpu() {
    "$bundle/benches/cpu_device" --bench --warm-up-time 1 --measurement-time 3 >"$out/cpu_device.txt" 2>&1 || status=1
    grep -E 'time:|thrpt:' "$out/cpu_device.txt"
}

for part in $parts; do
    echo "== $part"
    "$part"
done
tar -C "$out" -czf "$out/logs.tar.gz" logs && rm -r "$out/logs"
echo "status $status"
exit $status
