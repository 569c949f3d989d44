//! Groups of requests with equal beginnings, sent in rounds through `isotherm serve`: who answers, and from which cache.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use isotherm_report::{Align, Table};
use serde_json::{Value, json};

use super::binary::Binary;
use super::replica::MODEL;
use super::serve::Serve;
use crate::failure::Failure;

pub(crate) const TITLE: &str = "Seven beginnings of about 2,000 tokens, four rounds, through `isotherm serve`";

/// An odd number: taking turns would keep an even number of groups apart by chance.
const GROUPS: usize = 7;
const ROUNDS: usize = 4;
const STRATEGIES: [&str; 4] = ["random", "round-robin", "prefix-aware", "adaptive"];

/// What one request came to.
struct Answer {
    replica: String,
    prompt_tokens: u64,
    cached_tokens: u64,
    took: Duration,
}

/// Sends the rounds under each strategy, with other words each time, so that no strategy finds the caches of another.
pub(crate) fn measure(binary: &Binary, urls: &[String]) -> Result<String, Failure> {
    let mut table = Table::new([Align::Left, Align::Right, Align::Right, Align::Right, Align::Left]);
    table.row(["strategy", "cached tokens", "TTFT of the first round", "of later rounds", "requests by replica"]);
    for strategy in STRATEGIES {
        let serve = Serve::start(binary, urls, strategy, &[])?;
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            let answers: Result<Vec<Answer>, Failure> =
                (0..GROUPS).map(|group| ask(&serve.authority, strategy, group, round)).collect();
            rounds.push(answers?);
        }
        table.row(row(strategy, urls.len(), &rounds));
    }
    Ok(table.to_string())
}

fn row(strategy: &str, replicas: usize, rounds: &[Vec<Answer>]) -> [String; 5] {
    let all = || rounds.iter().flatten();
    let sum = |figure: fn(&Answer) -> u64| all().map(figure).sum::<u64>() as f64;
    let cached = 100.0 * sum(|answer| answer.cached_tokens) / sum(|answer| answer.prompt_tokens);
    let requests = (0..replicas).map(|ordinal| {
        let name = format!("replica-{ordinal}");
        all().filter(|answer| answer.replica == name).count().to_string()
    });
    let (first, later) = rounds.split_at(1);
    [
        strategy.to_owned(),
        format!("{cached:.1} %"),
        format!("{:.0} ms", mean_milliseconds(first)),
        format!("{:.0} ms", mean_milliseconds(later)),
        requests.collect::<Vec<_>>().join(" + "),
    ]
}

/// From the request to its answer of one token: the time to the first one.
fn mean_milliseconds(rounds: &[Vec<Answer>]) -> f64 {
    let took: Duration = rounds.iter().flatten().map(|answer| answer.took).sum();
    1_000.0 * took.as_secs_f64() / rounds.iter().flatten().count().max(1) as f64
}

fn ask(authority: &str, strategy: &str, group: usize, round: usize) -> Result<Answer, Failure> {
    let sentence = format!("Under {strategy}, group {group} of the readers compares what the two machines remember. ");
    let content = format!("{}Question {round}: what do they remember?", sentence.repeat(130));
    let body = json!({"model": MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": content}]}).to_string();
    let started = Instant::now();
    let (head, body) = post(authority, &body).map_err(|error| Failure::Failed(format!("{authority}: {error}")))?;
    let took = started.elapsed();
    let answer: Value =
        serde_json::from_str(&body).map_err(|error| Failure::Failed(format!("{error} in the answer\n{head}{body}")))?;
    let usage = &answer["usage"];
    let number = |value: &Value| value.as_u64().ok_or_else(|| Failure::Failed(format!("no such count: {answer}")));
    Ok(Answer {
        replica: header(&head, "x-isotherm-instance").unwrap_or_default(),
        prompt_tokens: number(&usage["prompt_tokens"])?,
        cached_tokens: number(&usage["prompt_tokens_details"]["cached_tokens"])?,
        took,
    })
}

/// Head and body of the answer, which ends with the connection.
pub(super) fn post(authority: &str, body: &str) -> std::io::Result<(String, String)> {
    let mut connection = TcpStream::connect(authority)?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(Duration::from_secs(120)))?;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes())?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok((head.to_owned(), body.to_owned()))
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    headers.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Answer, header, row};

    #[test]
    fn a_row_tells_share_means_and_replicas() {
        let answer = |replica: &str, cached_tokens, millis| Answer {
            replica: replica.to_owned(),
            prompt_tokens: 2_000,
            cached_tokens,
            took: Duration::from_millis(millis),
        };
        let rounds = [
            vec![answer("replica-0", 0, 900), answer("replica-1", 0, 950)],
            vec![answer("replica-0", 1_900, 40), answer("replica-1", 1_900, 50)],
        ];
        assert_eq!(row("prefix-aware", 2, &rounds), ["prefix-aware", "47.5 %", "925 ms", "45 ms", "2 + 2"]);
    }

    #[test]
    fn headers_are_found_in_any_case() {
        assert_eq!(
            header("HTTP/1.1 200 OK\r\nX-Isotherm-Instance: a\r\n", "x-isotherm-instance").as_deref(),
            Some("a")
        );
    }
}
