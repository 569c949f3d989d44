//! Tests of the agents: the recorded sessions keep their lengths, what they share, and their pauses.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use super::{AgentSessions, Agents};
use crate::{Counter, Plan, PlannedRequest, SessionId, TraceSource};

fn recorded() -> Vec<Value> {
    let mut text = String::new();
    let gzip: &[u8] = include_bytes!("../../../../data/claude-code-sessions.jsonl.gz");
    MultiGzDecoder::new(gzip).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn agents() -> Agents {
    Agents { longest_context: u32::MAX, longest_think: Duration::MAX, ..Agents::for_instances(7).unwrap() }
}

fn replays() -> Vec<Vec<PlannedRequest>> {
    let agents = agents();
    (0..18).map(|number| agents.replay(number, SessionId(number as u64)).collect()).collect()
}

/// Tokens of the pieces with which both prompts begin.
fn common(left: &PlannedRequest, right: &PlannedRequest) -> u64 {
    let pairs = left.prompt.iter().zip(&right.prompt);
    pairs.take_while(|(left, right)| left == right).map(|(piece, _)| u64::from(piece.tokens)).sum()
}

#[test]
fn prompts_have_the_recorded_lengths_and_share_what_the_hashes_say() {
    let mut pairs = 0;
    for (recorded, replay) in recorded().iter().zip(replays()) {
        let requests = recorded["requests"].as_array().unwrap();
        assert_eq!(requests.len(), replay.len());
        for (later, request) in replay.iter().enumerate() {
            assert_eq!(request.prompt_tokens(), requests[later]["in"].as_u64().unwrap());
            assert_eq!(u64::from(request.output_tokens), requests[later]["out"].as_u64().unwrap());
            for (earlier, before) in replay[..later].iter().enumerate() {
                let blocks = |place: usize| requests[place]["hash_ids"].as_array().unwrap();
                let equal = blocks(earlier).iter().zip(blocks(later)).take_while(|(left, right)| left == right).count();
                let (shared, hashed) = (common(before, request), equal as u64 * 64);
                if equal < blocks(earlier).len().min(blocks(later).len()) {
                    assert_eq!(shared, hashed);
                } else {
                    assert!((hashed..hashed + 64).contains(&shared), "{shared} tokens in pieces, {hashed} in blocks");
                }
                pairs += 1;
            }
        }
    }
    assert!(pairs > 3_000, "{pairs}");
}

#[test]
fn most_answers_come_back_in_the_next_prompt() {
    let (mut returned, mut all) = (0, 0);
    for replay in replays() {
        for [before, after] in replay.array_windows() {
            let answer = after.prompt.get(before.prompt.len());
            all += 1;
            returned += usize::from(answer.is_some_and(|p| (p.id, p.tokens) == (before.output, before.output_tokens)));
        }
    }
    assert!(returned * 100 > all * 80, "{returned} of {all}");
}

/// Counted by the hashes of blocks alone, the shipped sessions have .896 and .522; answers and partial blocks add a
/// little.
#[test]
fn an_agent_that_stays_on_one_instance_finds_nearly_all_of_its_prompts() {
    let mut counter = Counter::new(7);
    let agents = Agents { shared_tools: false, ..agents() };
    let requests = (0..18).flat_map(|number| agents.replay(number, SessionId(number as u64)));
    requests.for_each(|request| counter.count(&request, true));
    let found = counter.prediction().unwrap();
    assert!((0.896..0.910).contains(&found.affinity.of_tokens), "{found:?}");
    assert!((0.522..0.530).contains(&found.random.of_tokens), "{found:?}");
}

#[test]
fn sessions_share_tools_of_equal_length_if_told_so_and_nothing_else() {
    let session = |number, shared_tools| {
        let agents = Agents { shared_tools, ..agents() };
        agents.replay(0, SessionId(number)).next().unwrap()
    };
    assert_eq!(common(&session(1, true), &session(2, true)), 12_439);
    assert_eq!(common(&session(1, false), &session(2, false)), 0);
    assert_eq!(session(1, true).prompt[1].tokens, 2_770, "then comes the system prompt");
}

#[test]
fn pauses_are_recorded_ones_and_cut_where_nobody_waits() {
    let replay = &replays()[0];
    let seconds: Vec<f64> = replay.iter().take(4).map(|request| request.think.as_secs_f64()).collect();
    assert_eq!(seconds, [0.0, 18.0, 12.0, 11.0]);
    let agents = Agents { longest_think: Duration::from_secs(60), ..agents() };
    let longest = agents.replay(0, SessionId(0)).map(|request| request.think).max();
    assert_eq!(longest, Some(Duration::from_secs(60)));
}

#[test]
fn users_run_sessions_within_the_context() {
    let plan = Plan::new(Agents::for_instances(2).unwrap(), 1).unwrap();
    assert_eq!(plan.users(), 24);
    let requests = plan.in_turn(2_000);
    assert!(requests.iter().all(|request| request.prompt_tokens() + u64::from(request.output_tokens) <= 131_072));
    let narrow = Agents { longest_context: 10_000, ..Agents::for_instances(2).unwrap() };
    let error = Plan::new(narrow, 1).unwrap_err().to_string();
    assert_eq!(error, "none of the recorded sessions begins within 10000 tokens");
}

fn read(text: &str) -> Result<AgentSessions, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let name = file.path().display().to_string();
    AgentSessions::read(&TraceSource::file(file.path())).map_err(|error| error.to_string().replace(&name, "sessions"))
}

#[test]
fn sub_agents_run_where_they_were_started() {
    let text = r#"{"block_size": 4, "requests": [
        {"t": 0, "type": "n", "in": 8, "out": 2, "hash_ids": [1, 2]},
        {"t": 3, "type": "subagent", "agent_id": "a", "requests": [
            {"t": 3, "type": "s", "in": 5, "out": 1, "hash_ids": [9]},
            {"t": 5, "type": "s", "in": 9, "out": 1, "hash_ids": [9, 10], "api_time": 1}]},
        {"t": 9, "type": "n", "in": 12, "out": 1, "hash_ids": [1, 2, 3], "think_time": 1.5}]}"#;
    let sessions = Arc::new(read(&text.replace('\n', " ")).unwrap());
    let replay: Vec<PlannedRequest> = Agents { sessions, ..agents() }.replay(0, SessionId(0)).collect();
    let lengths: Vec<u64> = replay.iter().map(PlannedRequest::prompt_tokens).collect();
    assert_eq!(lengths, [8, 5, 9, 12]);
    let thinks: Vec<f64> = replay.iter().map(|request| request.think.as_secs_f64()).collect();
    assert_eq!(thinks, [0.0, 3.0, 2.0, 1.5]);
    assert_eq!(common(&replay[1], &replay[2]), 5);
    assert_eq!(common(&replay[0], &replay[3]), 8);
}

#[test]
fn a_wrong_session_is_an_error_that_names_its_line() {
    let good = r#"{"block_size": 4, "requests": [{"t": 0, "type": "n", "in": 8, "out": 2, "hash_ids": [1, 2]}]}"#;
    assert!(read(&format!("{good}\n\n{good}\n")).is_ok_and(|sessions| sessions.0.len() == 2));
    let error = read(&format!("{good}\n{}\n", good.replace("[1, 2]", "[1]"))).unwrap_err();
    assert_eq!(
        error,
        "sessions, line 2: the request at t = 0 has 1 hash_ids for an input of 8 tokens; it must have one for each of \
         its 2 blocks of 4, and at least 1 token"
    );
    assert!(read(&good.replace(": 4", ": 0")).unwrap_err().contains("block_size is 0"));
    assert!(read("[]").unwrap_err().starts_with("sessions, line 1: "));
}
