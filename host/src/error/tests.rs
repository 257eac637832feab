//! Tests of the texts and traits of errors.

use std::panic::Location;

use super::*;

#[test]
fn errors_travel_between_threads_and_stay_small() {
    fn travels<T: Send + Sync + Clone + std::error::Error + 'static>() {}
    travels::<Error>();
    assert!(size_of::<Error>() <= 128, "{} bytes", size_of::<Error>());
}

#[test]
fn a_panic_reads_as_file_line_block_and_thread() {
    let error = |launched| Error::KernelPanic {
        kernel: "blur",
        launched,
        message: "boom".into(),
        file: "src/main.rs".into(),
        line: 7,
        column: 9,
        block: [2, 0, 0],
        thread: [31, 1, 0],
    };
    let panicked = "panicked at src/main.rs:7:9 in block (2, 0, 0), thread (31, 1, 0): boom";
    assert_eq!(error(LaunchSites::default()).to_string(), format!("kernel `blur` {panicked}"));
    let here = Location::caller();
    let launched = error(LaunchSites::from_iter([here, here]));
    assert_eq!(launched.to_string(), format!("kernel `blur` (launched at {here}) {panicked}"));
    assert_eq!(error(LaunchSites::default()).launched_at(here), launched);
    assert_eq!(format!("{launched:?}"), launched.to_string());
}

#[test]
fn a_failed_launch_names_the_kernels_at_suspicion() {
    let error = |kernels| Error::LaunchFailed {
        kernels,
        operation: "cuStreamSynchronize",
        code: 719,
        name: "CUDA_ERROR_LAUNCH_FAILED".into(),
        text: "unspecified launch failure".into(),
    };
    let here = Location::caller();
    let [a, b] = ["a", "b"].map(|name| LaunchedKernel::new(name, here));
    assert!(error(vec![a]).to_string().contains(&format!("synchronisation: `a` at {here};")));
    assert!(error(vec![a, b]).to_string().contains(&format!("one of: `a` at {here}, `b` at {here};")));
}

#[test]
fn different_shapes_are_named_with_their_extents() {
    let error = |shapes| {
        Error::Launch(LaunchError::ShapesDiffer { kernel: "add", arguments: ["x", "y"], shapes }).to_string()
    };
    let text =
        "kernel `add`: `x` has 7 elements and `y` 8: the kernel requires the same shape, `same_shape(x, y)`";
    assert_eq!(error([[7, 1, 1], [8, 1, 1]]), text);
    assert!(error([[3, 4, 1], [4, 3, 1]]).contains("`x` has 3 x 4 elements and `y` 4 x 3:"));
    assert!(error([[3, 1, 2], [0, 1, 1]]).contains("`x` has 3 x 1 x 2 elements and `y` 0:"));
}
