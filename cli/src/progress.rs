//! Progress of long steps: a line for each, with its duration. It goes to standard error, the same on a
//! terminal and in a log.

use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The interval at which a running step prints its time.
const TICK: Duration = Duration::from_secs(5);

/// The steps of a set-up. Dropping this ends the line of the last one.
pub(crate) struct Steps<W: Write + Clone + Send + 'static> {
    output: W,
    /// The text before each line.
    title: &'static str,
    tick: Duration,
    running: Option<Running>,
}

struct Running {
    start: Instant,
    stop: Sender<()>,
    ticker: JoinHandle<()>,
}

impl<W: Write + Clone + Send + 'static> Steps<W> {
    pub(crate) fn new(title: &'static str, output: W) -> Self {
        Steps { output, title, tick: TICK, running: None }
    }

    /// Ends the step before, and begins another.
    pub(crate) fn step(&mut self, text: &str) {
        self.end("");
        let (title, start) = (self.title, Instant::now());
        write(&mut self.output, &format!("{title}: {text} ..."));
        let (stop, stopped) = mpsc::channel();
        let (mut output, tick) = (self.output.clone(), self.tick);
        let ticker = thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(tick) {
                write(&mut output, &format!(" {}", seconds(start.elapsed())));
            }
        });
        self.running = Some(Running { start, stop, ticker });
    }

    /// Prints a line without a duration.
    pub(crate) fn note(&mut self, text: &str) {
        self.end("");
        write(&mut self.output, &format!("{}: {text}\n", self.title));
    }

    /// Ends the step as failed; `printed` is the output of its program.
    pub(crate) fn failed(&mut self, printed: &str) {
        self.end("failed after ");
        let lines = printed.trim_end().lines().map(|line| format!("    {line}\n"));
        write(&mut self.output, &lines.collect::<String>());
    }

    fn end(&mut self, outcome: &str) {
        let Some(running) = self.running.take() else { return };
        drop(running.stop);
        // The ticker only writes, and ignores errors.
        let _ = running.ticker.join();
        write(&mut self.output, &format!(" {outcome}{}\n", seconds(running.start.elapsed())));
    }
}

impl<W: Write + Clone + Send + 'static> Drop for Steps<W> {
    fn drop(&mut self) {
        self.end("");
    }
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} s", time.as_secs())
    }
}

/// A closed pipe is no reason to stop.
fn write(output: &mut impl Write, text: &str) {
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

/// Standard error, for any number of writers.
#[derive(Clone)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::io::stderr().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    #[test]
    fn a_step_is_a_line_with_its_time() {
        let page = Page::default();
        let mut steps = Steps::new("setup", page.clone());
        steps.note("toolchain: found");
        steps.step("building core");
        assert_eq!(
            page.text(),
            "setup: toolchain: found\nsetup: building core ...",
            "it shows before its end"
        );
        steps.step("building more");
        drop(steps);
        let expected =
            "setup: toolchain: found\nsetup: building core ... 0.0 s\nsetup: building more ... 0.0 s\n";
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn a_long_step_shows_that_time_passes() {
        let page = Page::default();
        let mut steps = Steps::new("setup", page.clone());
        steps.tick = Duration::from_millis(20);
        steps.step("building");
        while page.text().matches(" s").count() < 2 {
            thread::sleep(Duration::from_millis(5));
        }
        drop(steps);
        assert!(page.text().starts_with("setup: building ... 0.0 s 0."), "{}", page.text());
        assert_eq!(page.text().lines().count(), 1);
    }

    #[test]
    fn the_output_of_a_program_is_shown_below_its_failure() {
        let page = Page::default();
        let mut steps = Steps::new("setup", page.clone());
        steps.step("apt-get update");
        steps.failed("E: no network\nE: really\n\n");
        steps.step("another way");
        drop(steps);
        let expected = "setup: apt-get update ... failed after 0.0 s\n    E: no network\n    E: really\n\
                        setup: another way ... 0.0 s\n";
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn times_are_as_exact_as_a_reader_wants_them() {
        assert_eq!(seconds(Duration::from_millis(1260)), "1.3 s");
        assert_eq!(seconds(Duration::from_millis(31_990)), "31 s");
    }
}
