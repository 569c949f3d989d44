//! Requests as CSV (RFC 4180, with a plain line feed): one row each.

use std::io::{self, Write};
use std::time::Duration;

use crate::RequestRecord;

/// The columns, in order. Times are seconds since the strategy's run began, in the engines' time.
const COLUMNS: [&str; 17] = [
    "strategy",
    "sequence",
    "user",
    "warm_up",
    "send_seconds",
    "first_token_seconds",
    "end_seconds",
    "instance",
    "reason",
    "home",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "status",
    "error",
    "error_detail",
    "ttft_ms",
];

/// Writes the line that names the columns.
///
/// # Errors
/// Those of `out`.
pub fn write_header(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))
}

/// Writes one row for each record. What is not known stays empty.
///
/// # Errors
/// Those of `out`.
pub fn write_rows(out: &mut impl Write, strategy: &str, records: &[RequestRecord]) -> io::Result<()> {
    records.iter().try_for_each(|record| writeln!(out, "{}", row(strategy, record).join(",")))
}

fn row(strategy: &str, record: &RequestRecord) -> [String; COLUMNS.len()] {
    let failure = record.failure.as_ref();
    [
        field(strategy),
        record.sequence.to_string(),
        record.user.to_string(),
        record.warm_up.to_string(),
        seconds(record.send),
        record.first_token.map(seconds).unwrap_or_default(),
        seconds(record.end),
        field(record.instance.as_deref().unwrap_or_default()),
        field(record.reason.as_deref().unwrap_or_default()),
        field(record.home.as_deref().unwrap_or_default()),
        number(record.prompt_tokens),
        number(record.cached_tokens),
        number(record.output_tokens),
        number(record.status.map(u64::from)),
        failure.map(|failure| failure.kind.as_str().to_owned()).unwrap_or_default(),
        field(failure.map(|failure| failure.detail.as_str()).unwrap_or_default()),
        record.ttft().map(|ttft| format!("{:.3}", ttft.as_secs_f64() * 1_000.0)).unwrap_or_default(),
    ]
}

fn seconds(time: Duration) -> String {
    format!("{:.6}", time.as_secs_f64())
}

fn number(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Quotes a field that would otherwise break the row.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{write_header, write_rows};
    use crate::{Failure, FailureKind, RequestRecord};

    #[test]
    fn writes_a_row_for_each_request_and_leaves_the_unknown_empty() {
        let answered = RequestRecord {
            sequence: 0,
            user: 3,
            warm_up: false,
            send: Duration::from_millis(1_500),
            first_token: Some(Duration::from_micros(1_562_500)),
            end: Duration::from_secs(3),
            instance: Some("chat-0".into()),
            reason: Some("home".into()),
            home: Some("chat-0".into()),
            prompt_tokens: Some(8_130),
            cached_tokens: Some(8_000),
            output_tokens: Some(130),
            status: Some(200),
            failure: None,
        };
        let failed = RequestRecord {
            sequence: 1,
            first_token: None,
            instance: None,
            reason: None,
            home: None,
            prompt_tokens: None,
            cached_tokens: None,
            output_tokens: None,
            status: None,
            warm_up: true,
            failure: Some(Failure { kind: FailureKind::Connect, detail: "refused, \"twice\"".to_owned() }),
            ..answered.clone()
        };
        let mut out = Vec::new();
        write_header(&mut out).unwrap();
        write_rows(&mut out, "PREFIX_AWARE", &[answered, failed]).unwrap();
        let expected = "strategy,sequence,user,warm_up,send_seconds,first_token_seconds,end_seconds,instance,reason,home,\
                        prompt_tokens,cached_tokens,output_tokens,status,error,error_detail,ttft_ms\n\
                        PREFIX_AWARE,0,3,false,1.500000,1.562500,3.000000,chat-0,home,chat-0,8130,8000,130,200,,,62.500\n\
                        PREFIX_AWARE,1,3,true,1.500000,,3.000000,,,,,,,,connect,\"refused, \"\"twice\"\"\",\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
