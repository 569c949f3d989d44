//! Timed runs against a server that answers as it is told.

use std::time::Duration;

use isotherm_report::Observation;
use isotherm_workload::{Arrivals, Documents, Plan, Tenants};
use serde_json::Value;

use super::{Replay, Timetable, replay};
use crate::run::mock::{Answer, Mock, Step, event, stream};
use crate::work::Work;
use crate::{Arm, Options, Target};

const TIMETABLE: Timetable = Timetable { warm_up: Duration::from_millis(200), duration: Duration::from_millis(1_000) };
/// Long enough that a machine which stands still for a while leaves something to measure.
const LONGER: Timetable = Timetable { duration: Duration::from_millis(3_000), ..TIMETABLE };

fn arm(mock: &Mock) -> Arm {
    let target = Target::new(&format!("http://{}", mock.address), "m").unwrap();
    Arm { target, instances: vec!["chat-0".to_owned(), "chat-1".to_owned()], accelerators: Some(2), text_seed: 1 }
}

fn drive(mock: &Mock, plan: &Plan) -> Replay {
    drive_for(TIMETABLE, mock, plan)
}

fn drive_for(timetable: Timetable, mock: &Mock, plan: &Plan) -> Replay {
    let options = Options { speed: 1.0, ..Options::for_users(1) };
    replay(&arm(mock), plan, timetable, &options, &(), &|| Some(Work::default())).unwrap()
}

fn documents(users: u32) -> Documents {
    Documents { users, think: Duration::from_millis(20), document_tokens: 50, ..Documents::for_instances(2) }
}

fn served_by(instance: &str, steps: Vec<Step>) -> Answer {
    let mut answer = Answer::sse(steps);
    answer.headers.push(("x-isotherm-instance", instance.to_owned()));
    answer.headers.push(("x-isotherm-reason", "spill".to_owned()));
    answer
}

/// When each session's first request is due, in milliseconds.
fn arrivals(plan: &Plan) -> Vec<u64> {
    let times = plan.open_loop().unwrap().map(|arrival| arrival.unwrap().at.as_millis() as u64);
    times.take_while(|&at| at < 3_000).collect()
}

#[test]
fn sessions_arrive_at_their_times_although_nothing_is_answered() {
    let plan = Plan::with_arrivals(documents(1), Arrivals::Poisson { per_second: 40.0 }, 3).unwrap();
    let wait = Duration::from_millis(4_000);
    let mock = Mock::start(move |_, _| {
        let mut steps = stream(2, 90, 16);
        steps.insert(0, Step::Wait(wait));
        Answer::sse(steps)
    });
    let observations = drive_for(LONGER, &mock, &plan).run.observations;
    let due = arrivals(&plan);
    assert_eq!(observations.len(), due.len(), "a first request for each session, and none after the end");
    let mut late = Vec::new();
    for (observation, due) in observations.iter().zip(due) {
        let by = (observation.send / 1_000_000).checked_sub(due);
        late.push(by.unwrap_or_else(|| panic!("due at {due} ms: {observation:?}")));
    }
    late.sort_unstable();
    // Whatever else the machine does makes some late, but none waits for an answer.
    assert!(late[late.len() / 4] < 100 && late[late.len() - 1] < 3_500, "{late:?}");
}

#[test]
fn an_observation_holds_what_router_and_engine_say() {
    let plan = Plan::new(documents(2), 1).unwrap();
    let mock = Mock::start(|_, _| served_by("chat-1", stream(3, 90, 16)));
    let Replay { run, requests, errors, .. } = drive(&mock, &plan);
    let Observation { prompt_tokens, cached_tokens, output_tokens, instance, spilled, failed, .. } =
        run.observations[run.observations.len() - 1];
    assert_eq!((prompt_tokens, cached_tokens, output_tokens), (90, Some(16), 3));
    assert_eq!((instance, spilled, failed), (Some(1), true, false));
    assert_eq!((run.window.clone(), run.instances.len()), (200_000_000..1_000_000_000, 2));
    assert!(run.observations.is_sorted_by_key(|observation| observation.send));
    assert!(run.observations.iter().all(|observation| observation.ttft.is_some_and(|ttft| ttft > 0)));
    // One that was due before the end may have been sent a moment after it, and counts for nothing.
    let measured = run.observations.iter().filter(|observation| run.window.contains(&observation.send));
    assert_eq!((requests, errors), (measured.count() as u64, 0));
    assert_eq!(run.parts[0].instance_time, 2 * 800_000_000 / 20);
}

#[test]
fn nothing_is_sent_after_the_end_and_failures_do_not_stop_users() {
    let plan = Plan::new(documents(3), 1).unwrap();
    let mock = Mock::start(|number, _| match number % 2 {
        0 => Answer::json(503, r#"{"error":"full"}"#),
        _ => Answer::sse(stream(1, 90, 0)),
    });
    let Replay { run, requests, errors, first_failure, .. } = drive_for(LONGER, &mock, &plan);
    assert!(run.observations.len() > 20, "{}", run.observations.len());
    // What was due before the end may be sent a moment after it; of each user, no more than that.
    let after_the_end = run.observations.iter().filter(|observation| observation.send >= run.window.end).count();
    assert!(after_the_end <= 3, "{after_the_end} after the end");
    assert!(errors * 3 > requests && errors < requests, "{errors} of {requests}");
    assert!(first_failure.is_some_and(|failure| failure.detail.contains("full")));
}

#[test]
fn answers_come_back_and_tenants_are_told() {
    let tenants = Tenants { users: 4, think: Duration::from_millis(5), system_tokens: 20, ..Tenants::for_instances(1) };
    let mock = Mock::start(|number, _| {
        let words = format!(r#"{{"choices":[{{"delta":{{"content":"answer {number}."}}}}]}}"#);
        Answer::sse(vec![event(&words), event("[DONE]")])
    });
    drive(&mock, &Plan::new(tenants, 1).unwrap());
    let seen = mock.seen.bodies.lock().unwrap();
    let roles = |body: &Value| -> Vec<String> {
        body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["role"].as_str().unwrap().to_owned())
            .collect()
    };
    let longest = seen.iter().max_by_key(|body| roles(body).len()).unwrap();
    assert!(roles(longest).len() >= 5, "{longest}");
    for (place, message) in longest["messages"].as_array().unwrap().iter().enumerate() {
        let said = message["content"].as_str().unwrap();
        assert_eq!(message["role"], if place % 2 == 0 { "user" } else { "assistant" });
        assert_eq!(said.starts_with("answer "), place % 2 == 1, "{said}");
    }
    let named = mock.seen.tenants.lock().unwrap();
    assert!(named.iter().any(Option::is_none) && named.iter().flatten().any(|tenant| tenant.starts_with("tenant-")));
}
