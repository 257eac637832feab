//! `cargo ferrogrid launch`: the variables of each rank, and ranks that fail.
#![cfg(unix)]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn launch(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
    command.arg("launch").args(arguments).env_remove("NCCL_COMM_ID").output().unwrap()
}

fn lines(output: &Output) -> Vec<String> {
    let mut lines: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn each_rank_has_its_place_and_all_have_one_file() {
    let script = "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $1 $FERROGRID_NCCL_FILE";
    let output = launch(&["-n", "3", "sh", "-c", script, "sh", "--own"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines(&output);
    let file = lines[0].rsplit(' ').next().unwrap();
    assert!(!std::path::Path::new(file).exists(), "{file}");
    let expected = [0, 1, 2].map(|rank| format!("{rank} {rank} 3 3 127.0.0.1 --own {file}"));
    assert_eq!(lines, expected);
}

#[test]
fn an_address_of_the_users_own_is_kept() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ferrogrid"));
    command.args(["launch", "-n", "1", "sh", "-c", "echo $NCCL_COMM_ID ${FERROGRID_NCCL_FILE-none}"]);
    let output = command.env("NCCL_COMM_ID", "node1:5").env_remove("FERROGRID_NCCL_FILE").output().unwrap();
    assert_eq!(lines(&output), ["node1:5 none"]);
}

#[test]
fn a_rank_that_fails_ends_the_others() {
    let start = Instant::now();
    let output = launch(&["-n", "2", "sh", "-c", "test $RANK = 1 && exit 7; exec sleep 100"]);
    assert_eq!(output.status.code(), Some(7));
    let text = String::from_utf8_lossy(&output.stderr);
    let expected = "error: rank 1 of 2 has failed: exit status: 7; the others have been ended\n";
    assert_eq!(text, expected);
    assert!(start.elapsed() < Duration::from_secs(50), "{:?}", start.elapsed());
}

#[test]
fn wrong_arguments_are_named() {
    let text = |arguments: &[&str]| {
        let output = launch(arguments);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let none = text(&["-n", "2", "/no/such/program"]);
    assert!(none.starts_with("error: cannot start /no/such/program: "), "{none}");
    let zero = text(&["-n", "0", "true"]);
    assert!(zero.contains("invalid value '0' for '--processes <COUNT>'"), "{zero}");
    assert!(text(&[]).contains("<PROGRAM>..."));
}
