//! `isotherm doctor`: what is wrong with a router and its engines, and what helps.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use isotherm_config::{Config, Environment, Overrides};
use isotherm_control::doctor::{Checkup, Finding, Verdict};
use isotherm_fleet::{Clock, Fleet};
use isotherm_report::{Align, Table};
use isotherm_telemetry::Metrics;
use serde_json::json;

use crate::admin_client::{AdminClient, AdminFlags};
use crate::exit::{Failure, Outcome};
use crate::output;

/// How long engines are given to answer probes, list their models and show their metrics.
const ASK_AROUND: Duration = Duration::from_secs(12);

/// Columns of the text of a finding.
const WIDTH: usize = 72;

/// Check a running router, or a configuration, and its engines
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm doctor                                    the router that runs here
  isotherm doctor --config isotherm.yaml             before it runs: asks the engines itself
  isotherm doctor --admin http://10.0.0.1:8081 --token-file T --beside http://10.0.0.2:8081
  isotherm doctor --json | jq '.findings[] | select(.verdict != \"ok\")'

What it checks: instances answer and are alike, prefix caching is on, cached tokens are reported, engine metrics are
found, clocks agree, prompts are longer than the prefix, limits, file descriptors, TLS and who may call. Checks that
need traffic look at the last 15 minutes.

Exit codes: 0 nothing wrong, or warnings only; 1 a problem (with --strict, a warning too); 2 nothing could be checked.")]
pub(crate) struct Arguments {
    /// Check this configuration and the engines that it names, without a router
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The admin plane of another router that stands beside; whether they agree is checked. Can be given again
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    beside: Vec<String>,

    /// Exit with 1 on warnings too
    #[arg(long)]
    strict: bool,

    /// Print the findings as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let findings = match &arguments.config {
        Some(file) => of_config(file)?.findings,
        None => of_routers(&arguments).map_err(unchecked)?,
    };
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (problems, warnings) = (count(Verdict::Problem), count(Verdict::Warning));
    if arguments.json {
        output::print_json(&json!({ "problems": problems, "warnings": warnings, "findings": findings }))?;
    } else {
        output::print(&table(&findings))?;
    }
    let said = format!("{}, {}", counted(problems, "problem"), counted(warnings, "warning"));
    if problems > 0 || (arguments.strict && warnings > 0) {
        return Err(Failure::Running(said));
    }
    if arguments.json { Ok(()) } else { output::print(&format!("\n{said}\n")) }
}

/// 1 is for what was found: a router that is not there was not checked.
fn unchecked(failure: Failure) -> Failure {
    match failure {
        Failure::Usage(text) | Failure::Running(text) | Failure::Invalid(text) => Failure::Usage(text),
    }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn of_routers(arguments: &Arguments) -> Result<Vec<Finding>, Failure> {
    let mut routers = Vec::new();
    let beside = arguments.beside.iter().map(|url| arguments.admin.at(url));
    for flags in std::iter::once(arguments.admin.clone()).chain(beside) {
        let told = AdminClient::new(&flags)?.call(Method::GET, "/api/doctor", None)?;
        let checkup: Checkup =
            serde_json::from_value(told).map_err(|error| Failure::running("the router's answer", error))?;
        routers.push((flags.admin.clone(), checkup));
    }
    let mut findings = Checkup::disagreements(&routers);
    let several = routers.len() > 1;
    for (name, checkup) in routers {
        findings.extend(checkup.findings.into_iter().map(|finding| match several {
            true => Finding { subject: format!("{} at {name}", finding.subject), ..finding },
            false => finding,
        }));
    }
    Ok(findings)
}

/// Asks the engines as a router does when it starts.
fn of_config(file: &Path) -> Result<Checkup, Failure> {
    let config = Config::load(Some(file), &Environment::of_process(), &Overrides::default());
    let config = config.map_err(|error| Failure::Usage(error.to_string()))?;
    let runtime = crate::router::control_runtime().map_err(unchecked)?;
    runtime.block_on(async {
        let fleet = Fleet::new(&config, Arc::new(Metrics::new(env!("CARGO_PKG_VERSION"))), Clock::start());
        let tasks = fleet.spawn();
        let all_heard = async {
            while !fleet.is_known() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        // Who has said nothing by then is told of as it stands.
        let _ = tokio::time::timeout(ASK_AROUND, all_heard).await;
        let checkup = Checkup::of_config(&config, &fleet);
        drop(tasks);
        Ok(checkup)
    })
}

fn table(findings: &[Finding]) -> String {
    let mut table = Table::new([Align::Left, Align::Left, Align::Left, Align::Left]);
    table.row(["check", "verdict", "where", "finding"]);
    for finding in findings {
        let verdict = match finding.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "WARNING",
            Verdict::Problem => "PROBLEM",
        };
        let fix = if finding.fix.is_empty() { Vec::new() } else { wrapped(&format!("fix: {}", finding.fix)) };
        let mut lines = wrapped(&finding.finding).into_iter().chain(fix);
        table.row([&finding.check, verdict, &finding.subject, &lines.next().unwrap_or_default()]);
        lines.for_each(|line| _ = table.row(["", "", "", &line]));
    }
    table.to_string()
}

/// Text in lines of at most [`WIDTH`] characters, a longer word in one of its own. What engines said must not steer the
/// terminal.
fn wrapped(text: &str) -> Vec<String> {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut() {
            let fits = line.is_empty() || line.chars().count() + 1 + word.chars().count() <= WIDTH;
            match (fits, line.is_empty()) {
                (true, true) => line.push_str(word),
                (true, false) => *line = format!("{line} {word}"),
                (false, _) => lines.push(format!("  {word}")),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_told_with_their_fix_below_them() {
        let finding = |verdict, fix: &str| Finding {
            check: "clocks".to_owned(),
            verdict,
            subject: "i".to_owned(),
            finding: "its clock is 90 s\u{1b}[2J behind".to_owned(),
            fix: fix.to_owned(),
        };
        let text = table(&[finding(Verdict::Warning, &"Follow NTP ".repeat(10)), finding(Verdict::Ok, "")]);
        assert!(text.contains("clocks  WARNING  i      its clock is 90 s [2J behind\n"), "{text}");
        assert!(text.contains("fix: Follow NTP") && text.contains("clocks  ok"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
        assert_eq!((counted(1, "problem"), counted(2, "warning")), ("1 problem".to_owned(), "2 warnings".to_owned()));
    }
}
