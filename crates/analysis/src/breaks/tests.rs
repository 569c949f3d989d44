//! Made prompts, each with one thing that breaks sharing.

use isotherm_wire::api::Api;
use serde_json::{Value, json};

use super::*;

const RULES: &str = "You answer questions about thermal engineering in plain words. Never guess a figure that you do not \
    know. Name your sources where you can, and say when two of them disagree. Prefer units of the SI in all answers.";

fn analysed(requests: impl Iterator<Item = Value>) -> (Vec<Site>, Vec<Shared>) {
    let (mut breaks, mut prompt, mut blocks) = (Breaks::new(false), Prompt::default(), Vec::new());
    let mut shared = Vec::new();
    for body in requests {
        prompt.fill(body.to_string().as_bytes(), Api::ChatCompletions).unwrap();
        prompt.chain(1, &mut blocks);
        shared.push(breaks.take(&prompt, &blocks, 1));
    }
    (breaks.worst(5), shared)
}

fn chat(system: &str, question: u32) -> Value {
    let question = format!("How warm is sample {}?", "abcdefghij".repeat(1 + question as usize % 7));
    json!({ "messages": [{ "role": "system", "content": system }, { "role": "user", "content": question }] })
}

#[test]
fn a_time_stamp_in_front_is_named_with_its_place_and_its_cost() {
    let request = |number: u32| {
        let time = format!("2026-11-30T10:{:02}:{:02}Z", number / 60, number % 60);
        chat(&format!("Current time: {time}\n{RULES}"), number)
    };
    let (sites, shared) = analysed((0..100).map(request));
    let worst = &sites[0];
    assert_eq!((worst.cause, worst.place.to_string()), (Cause::Timestamp, "messages[0] (system)".to_owned()));
    assert_eq!((worst.offsets, worst.requests), ((14, 14), 99));
    let per_request = worst.lost_units / 99 / u64::from(UNITS_PER_TOKEN);
    assert!((45..75).contains(&per_request), "{per_request}");
    assert!(shared[1..].iter().all(|shared| shared.units < shared.repaired_units / 4));
}

#[test]
fn the_time_is_blamed_and_not_the_date_before_it_that_stays() {
    let request = |number: u32| {
        chat(&format!("Day 30.11.2026, request {:08}, plan 17. {RULES}", 31_415_926 + 7 * number), number)
    };
    let (sites, _) = analysed((0..50).map(request));
    assert_eq!((sites[0].cause, sites[0].offsets), (Cause::Number, (24, 24)));
    assert!(sites[0].requests >= 48);
}

#[test]
fn user_data_in_front_is_told_by_what_follows_it() {
    let names = ["Ada", "Grace", "Emmy", "Lise", "Marie", "Rosalind", "Chien-Shiung"];
    let request = |number: u32| {
        let name = names[number as usize % names.len()];
        chat(&format!("You talk to {name} {} {name} now.\n{RULES}", "x".repeat(number as usize % 13)), number)
    };
    let (sites, _) = analysed((0..100).map(request));
    assert_eq!((sites[0].cause, sites[0].place.to_string()), (Cause::OtherText, "messages[0] (system)".to_owned()));
    // Behind `You talk to `, or behind the names that begin alike.
    assert_eq!(sites[0].offsets.0, 12);
}

#[test]
fn tools_in_another_order_are_told_from_tools_spelled_differently() {
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "description": RULES } });
    let with = |tools: Value, number| {
        let mut body = chat(RULES, number);
        body["tools"] = tools;
        body
    };
    let turned = |number: u32| {
        let (a, b, c) = (tool("a"), tool("b"), tool("c"));
        let order = match number % 3 {
            0 => json!([a, b, c]),
            1 => json!([b, c, a]),
            _ => json!([c, a, b]),
        };
        with(order, number)
    };
    let (sites, _) = analysed((0..6).map(turned));
    assert_eq!((sites[0].cause, sites[0].place.to_string()), (Cause::ToolOrder, "tools".to_owned()));
}

#[test]
fn documents_in_another_order_are_known_text_in_another_order() {
    let document =
        |topic: &str| format!("About {topic}: {}\n", format!("{topic} has been measured with care. ").repeat(8));
    let topics = ["alloys", "brines", "cements", "dusts"];
    let request = |number: usize| {
        let documents: String = (0..4).map(|place| document(topics[(place + number * 3) % 4])).collect();
        chat(&format!("{RULES}\n{documents}"), 1)
    };
    let (sites, _) = analysed((0..8).map(request));
    assert_eq!(sites[0].cause, Cause::OtherOrder, "{sites:?}");
}

#[test]
fn conversations_that_go_on_break_nothing() {
    let turn = |number: usize| {
        let mut messages = vec![json!({ "role": "system", "content": RULES })];
        for turn in 0..=number {
            let text = format!("turn {turn}: {}", "something new about it ".repeat(3));
            messages.push(json!({ "role": if turn % 2 == 0 { "user" } else { "assistant" }, "content": text }));
        }
        json!({ "messages": messages })
    };
    let (sites, _) = analysed((0..20).map(turn));
    assert!(sites.iter().all(|site| site.requests <= 1), "{sites:?}");
}

#[test]
fn one_system_prompt_in_two_roles_is_told() {
    let request = |number: u32| {
        let mut body = chat(RULES, number);
        if number % 2 == 1 {
            body["messages"][0]["role"] = json!("developer");
        }
        body
    };
    let (sites, _) = analysed((0..4).map(request));
    assert_eq!((sites[0].cause, sites[0].place.to_string()), (Cause::OtherRole, "messages[0] (developer)".to_owned()));
}
