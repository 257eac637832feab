//! The tests of this program once more, on two GPUs of a fake driver with a fake NCCL: that the calls are right, that memory is ordered
//! (the driver ends the process where it is not), and that failures are found.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::calls;
use crate::world::on_gpus;

/// The tests that the fakes can run: not those with processes or with halves, and what the driver cannot do.
const TESTS: [&str; 42] = [
    "random::random_operations_in_random_groups_and_splits_match_a_model",
    "collectives::operations_in_place_match_those_that_are_not",
    "collectives::an_average_divides_by_the_number_of_ranks",
    "failures::a_rank_that_does_nothing_is_an_error_within_the_time_out",
    "failures::an_operation_that_waits_on_the_device_ends_and_its_result_is_none",
    "failures::an_aborted_communicator_fails_what_waits",
    "failures::work_behind_an_operation_is_none_that_it_waits_for",
    "failures::an_abort_by_another_thread_ends_a_first_operation",
    "failures::wrong_lengths_ranks_and_streams_are_refused_at_once",
    "failures::a_split_waits_for_all_ranks_and_no_longer_than_the_time_out",
    "failures::devices_of_two_kinds_or_one_gpu_twice_are_refused",
    "graphs::a_recorded_sum_between_copies_repeats_a_hundred_times",
    "graphs::two_graphs_of_a_communicator_and_operations_on_streams_take_turns",
    "graphs::one_graph_has_messages_and_operations_of_several_communicators",
    "graphs::ranks_of_several_threads_record_alone",
    "graphs::a_graph_outlives_its_communicator",
    "graphs::a_graph_that_is_forgotten_keeps_its_communicator",
    "graphs::a_launch_by_one_rank_alone_is_an_error_within_the_time_out",
    "graphs::a_recording_by_one_rank_alone_is_an_error_within_the_time_out",
    "graphs::an_aborted_communicator_ends_launches_and_refuses_others",
    "graphs::what_graphs_cannot_hold_is_refused",
    "registered::registered_buffers_are_buffers_of_operations_and_graphs",
    "registered::a_registered_buffer_may_be_dropped_before_and_after_its_communicator",
    "registered::a_registered_buffer_outlives_the_failure_of_its_communicator",
    "registered::wrong_streams_and_lengths_of_registered_buffers_are_refused",
    "symmetric::symmetric_buffers_are_buffers_of_operations_and_graphs",
    "symmetric::ranks_drop_symmetric_buffers_in_any_order",
    "symmetric::symmetric_buffers_outlive_their_communicators",
    "symmetric::ranks_of_several_threads_make_symmetric_buffers",
    "symmetric::different_lengths_are_an_error_of_all_ranks_which_go_on",
    "symmetric::a_rank_that_makes_a_symmetric_buffer_alone_is_an_error_within_the_time_out",
    "symmetric::symmetric_buffers_outlive_the_failure_of_their_communicator",
    "symmetric::wrong_streams_and_lengths_of_symmetric_buffers_are_refused",
    "order::operations_are_ordered_with_work_on_other_streams",
    "order::buffers_and_streams_may_be_dropped_when_an_operation_is_enqueued",
    "order::work_runs_after_its_communicator_is_dropped",
    "order::a_group_that_is_dropped_or_forgotten_has_done_nothing",
    "order::ranks_of_several_threads",
    "order::threads_share_communicators_and_streams",
    "order::splits_have_their_colors_and_the_order_of_their_keys",
    "order::a_default_stream_of_a_gpu_is_refused",
    "order::gpus_of_one_process_have_access_to_each_other",
];

#[test]
#[cfg(target_os = "linux")]
fn the_same_tests_pass_on_gpus_of_a_fake_driver() {
    if on_gpus() {
        return;
    }
    // Work runs when something waits for it; or by itself, and freed memory has its next owner at once.
    for settings in ["devices=2", "devices=2,alive=1"] {
        run(&TESTS, settings, None);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn operations_in_a_row_have_few_events() {
    if on_gpus() {
        return;
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    run(&["calls::operations_in_a_row"], "devices=2", Some(log.path()));
    let calls = std::fs::read_to_string(log.path()).unwrap();
    let (_, calls) = calls.split_once(calls::BEGIN).unwrap();
    let (calls, _) = calls.split_once(calls::END).unwrap();
    let count = |name| calls.lines().filter(|call| *call == name).count();
    assert_eq!(count("cuStreamAddCallback"), calls::OPERATIONS, "the fake NCCL's");
    // One for 32 operations, and perhaps one whenever the watchdog looks, which is once in 5 ms.
    let events = count("cuEventRecord");
    assert!(events < calls::OPERATIONS / 4, "{events} events");
}

/// Tests of symmetric buffers that look at whether they are windows only where there are some.
const SYMMETRIC: [&str; 4] = [
    "symmetric::symmetric_buffers_are_buffers_of_operations_and_graphs",
    "symmetric::ranks_drop_symmetric_buffers_in_any_order",
    "symmetric::ranks_of_several_threads_make_symmetric_buffers",
    "symmetric::symmetric_buffers_outlive_the_failure_of_their_communicator",
];

#[test]
#[cfg(target_os = "linux")]
fn without_windows_symmetric_buffers_are_registered_ones() {
    if on_gpus() {
        return;
    }
    // A library that is too old, and GPUs that cannot reach each other's memory.
    run_with(Nccl::WithoutWindows, &SYMMETRIC, "devices=2", &[]);
    run_with(Nccl::WithWindows, &SYMMETRIC, "devices=2", &[("FAKE_NCCL", "no_windows".as_ref())]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_rank_without_memory_for_a_symmetric_buffer_tells_the_others() {
    if on_gpus() {
        return;
    }
    let test = "symmetric::a_rank_without_memory_is_an_error_of_all_ranks_which_go_on";
    run(&[test], "devices=2,fail=cuMemAlloc_v2:2:2:2", None);
}

/// Which of the fake libraries.
#[derive(Clone, Copy)]
enum Nccl {
    WithWindows,
    WithoutWindows,
}

/// Runs tests of this program with the fakes, which log the driver's calls.
fn run(tests: &[&str], settings: &str, log: Option<&Path>) {
    let log: Vec<_> = log.map(|log| ("FAKE_CUDA_LOG", log.as_os_str())).into_iter().collect();
    run_with(Nccl::WithWindows, tests, settings, &log);
}

/// As `run`, with variables of the environment.
fn run_with(nccl: Nccl, tests: &[&str], settings: &str, variables: &[(&str, &OsStr)]) {
    // Once for all threads: two compilers would write the same intermediate files.
    static FAKES: OnceLock<[PathBuf; 3]> = OnceLock::new();
    let [driver, new, old] = FAKES.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let nccl = sources.join("tests/fake_nccl/libnccl.rs");
        [
            compile(&sources.join("../host/tests/fake_driver/libcuda.rs"), "libcuda.so.1", &[]),
            compile(&nccl, "libnccl.so.2", &[]),
            compile(&nccl, "libnccl.so.2", &["--cfg=without_windows"]),
        ]
    });
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--test-threads", "1"])
        .args(tests)
        .env("LD_LIBRARY_PATH", driver)
        .env("FERROGRID_NCCL", if matches!(nccl, Nccl::WithWindows) { new } else { old })
        .env("FERROGRID_TEST_RANKS", "cuda")
        .env("FAKE_CUDA", settings)
        .envs(variables.iter().copied())
        .env_remove("FERROGRID_DEVICE")
        .output()
        .unwrap();
    let [text, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{settings}, {}\n{text}\n{errors}", output.status);
    assert!(text.contains(&format!("{} passed", tests.len())), "{text}");
}

/// The folder with a library of that name, compiled unless an earlier run has left it.
fn compile(source: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let of_flags = flags.concat().replace(['-', '='], "_");
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}{of_flags}_{:016x}", digest(source)));
    let finished = folder.join(name);
    if finished.exists() {
        return folder;
    }
    std::fs::create_dir_all(&folder).unwrap();
    let unfinished = folder.join(format!("{}.so", std::process::id()));
    let mut command = Command::new(rustc);
    command.args(["--edition=2024", "--crate-type=cdylib", "-Copt-level=1", "-Awarnings"]).args(flags);
    let output = command.arg("-o").args([&unfinished, source]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(unfinished, finished).unwrap();
    folder
}

/// Of all files in the folder of a library's source.
fn digest(source: &Path) -> u64 {
    let mut files = files(source.parent().unwrap());
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        std::fs::read(&file).unwrap().hash(&mut hasher);
    }
    hasher.finish()
}

/// The files in a folder and in the folders below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
