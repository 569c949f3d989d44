//! What a tenant learns of another's prompts by the clock: measured over many questions, with salts and without.
//!
//! An engine answers a prompt sooner whose beginning it holds. A spy who asks it about documents one by one so learns
//! which of them somebody else has asked about, unless the router gives each tenant a salt of its own.

use std::time::{Duration, Instant};

use isotherm_tests::{Client, chat, document};

use crate::tenants::TwoTenants;

/// Whoever tells the two kinds apart by chance has an area of a half under the curve.
const CHANCE: f64 = 0.5;

impl TwoTenants {
    /// The area under the curve of a spy who says "known" where the answer came soon: 1 when it is always right.
    ///
    /// Before each question of the spy the victim asks something, be it about the same document or another one, so that
    /// nothing but the document tells the two kinds apart.
    async fn area_under_curve(&self, questions: u64) -> f64 {
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for number in 0..questions {
            // As random as is needed, and the same each time.
            let is_known = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).count_ones() % 2 == 0;
            let asked = if is_known { number } else { number + 1_000_000 };
            ask(&self.victim, asked).await;
            let taken = ask(&self.spy, number).await;
            if is_known { known.push(taken) } else { unknown.push(taken) }
        }
        let wins = known.iter().flat_map(|fast| unknown.iter().map(move |slow| (fast, slow)));
        let sum: f64 = wins
            .map(|(fast, slow)| {
                if fast < slow {
                    1.0
                } else if fast == slow {
                    0.5
                } else {
                    0.0
                }
            })
            .sum();
        sum / (known.len() * unknown.len()) as f64
    }
}

/// How long a question about a document takes.
async fn ask(client: &Client, number: u64) -> Duration {
    let mut body = chat(&document(number, 2_000), "Yes or no?");
    body["max_tokens"] = 1.into();
    let begun = Instant::now();
    let _ = client.post("/v1/chat/completions", &body).await.ok();
    begun.elapsed()
}

async fn measure(questions: u64, least_without: f64, furthest_with: f64) {
    let without = TwoTenants::start("", "10").area_under_curve(questions).await;
    let with = TwoTenants::start("inject_cache_salt: true\n", "10").area_under_curve(questions).await;
    println!("{questions} questions: area under the curve {without:.3} without salts, {with:.3} with");
    assert!(without >= least_without, "the measurement shows nothing: {without:.3} without salts");
    assert!((with - CHANCE).abs() <= furthest_with, "a spy is right more often than by chance: {with:.3}");
}

/// Few questions: by chance alone the area strays by 0.05.
#[tokio::test]
async fn salts_leave_a_spy_with_a_clock_nothing_but_chance() {
    measure(120, 0.9, 0.2).await;
}

/// `cargo test -p isotherm-tests --test behaviour timing_oracle -- --ignored --nocapture`: two minutes.
#[tokio::test]
#[ignore = "takes minutes, and wants a machine that is quiet"]
async fn a_thousand_questions_tell_a_spy_nothing() {
    measure(1_000, 0.9, 0.05).await;
}
