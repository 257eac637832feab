//! The findings of `doctor`, as text or JSON.

use std::fmt;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

/// The state of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It exists and works.
    Ok,
    /// It is missing, and not required.
    Note,
    /// It is missing or wrong, and something requires it.
    Wrong,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Note => "note",
            Status::Wrong => "wrong",
        }
    }

    fn style(self) -> Style {
        match self {
            Status::Ok => AnsiColor::Green.on_default(),
            Status::Note => AnsiColor::Yellow.on_default(),
            Status::Wrong => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// The result for one component.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) status: Status,
    /// The component; the same on every machine.
    pub(crate) subject: &'static str,
    /// The result.
    pub(crate) finding: String,
    /// The advice; `None` if nothing is to be done.
    pub(crate) advice: Option<String>,
}

impl Finding {
    pub(crate) fn ok(subject: &'static str, finding: impl Into<String>) -> Self {
        Finding { status: Status::Ok, subject, finding: finding.into(), advice: None }
    }

    pub(crate) fn note(
        subject: &'static str,
        finding: impl Into<String>,
        advice: impl Into<Option<String>>,
    ) -> Self {
        Finding { status: Status::Note, subject, finding: finding.into(), advice: advice.into() }
    }

    pub(crate) fn wrong(
        subject: &'static str,
        finding: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Finding { status: Status::Wrong, subject, finding: finding.into(), advice: Some(advice.into()) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = self.status.style();
        // Further lines of the text are indented.
        let indent = format!("\n{:25}", "");
        let finding = self.finding.trim_end().replace('\n', &indent);
        write!(f, "{style}{:<5}{style:#}  {:<16}  {finding}", self.status.name(), self.subject)?;
        match &self.advice {
            Some(advice) => write!(f, "{indent}-> {}", advice.replace('\n', &format!("{indent}   "))),
            None => Ok(()),
        }
    }
}

/// Whether no finding is `wrong`.
pub(crate) fn none_is_wrong(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.status != Status::Wrong)
}

/// All findings as JSON. Fields keep their meaning while `schema` is 1.
pub(crate) fn report(findings: &[Finding]) -> Value {
    let one = |finding: &Finding| {
        json!({
            "subject": finding.subject,
            "status": finding.status.name(),
            "finding": finding.finding,
            "advice": finding.advice,
        })
    };
    let all: Vec<Value> = findings.iter().map(one).collect();
    json!({ "schema": 1, "ok": none_is_wrong(findings), "findings": all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_finding_is_the_verdict() {
        let mut findings = vec![Finding::ok("core", "there"), Finding::note("ptxas", "not there", None)];
        assert!(none_is_wrong(&findings));
        findings.push(Finding::wrong("device compiler", "none", "run it"));
        assert_eq!(report(&findings)["ok"], false);
        assert_eq!(report(&findings)["findings"][1]["advice"], Value::Null);
    }

    #[test]
    fn the_lines_of_a_finding_stand_below_each_other() {
        let finding = Finding::wrong("core", "one\ntwo\n", "do this\nthen that");
        let text = anstream::adapter::strip_str(&finding.to_string()).to_string();
        let indent = " ".repeat(25);
        assert_eq!(
            text,
            format!("wrong  core              one\n{indent}two\n{indent}-> do this\n{indent}   then that")
        );
    }
}
