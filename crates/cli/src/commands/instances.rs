//! `isotherm instances`: see and change the fleet of a running router.

use clap::{Args, Subcommand};
use hyper::Method;
use isotherm_report::{Align, Table};
use serde_json::{Map, Value, json};

use crate::admin_client::{AdminClient, AdminFlags, segment};
use crate::exit::Outcome;
use crate::output;

/// List, add, drain or remove instances of a running router
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm instances list
  isotherm instances add http://10.0.0.3:8000 --weight 2
  isotherm instances drain http://10.0.0.1:8000          no new requests; those under way finish
  isotherm instances drain --undo http://10.0.0.1:8000
  isotherm instances remove http://10.0.0.1:8000")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Args)]
struct Shared {
    /// The endpoint, where several are served [default: the first]
    #[arg(long, value_name = "NAME")]
    endpoint: Option<String>,

    /// The variant, where the endpoint has several [default: the only one that fits]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List every instance: where it is, whether it may be chosen, what it has in flight
    List {
        #[command(flatten)]
        shared: Shared,
    },
    /// Add an instance; it stays until it is removed or the router restarts
    Add {
        /// Where it is: http://HOST:PORT
        url: String,
        /// Its stable name [default: its URL]
        #[arg(long)]
        id: Option<String>,
        /// Its share relative to the others
        #[arg(long, value_name = "NUMBER")]
        weight: Option<f64>,
        /// The most requests in flight on it
        #[arg(long, value_name = "N")]
        max_in_flight: Option<u32>,
        #[command(flatten)]
        shared: Shared,
    },
    /// Send no new requests to an instance; those under way finish
    Drain {
        /// The instance's id, as listed
        id: String,
        /// Send new requests again
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        shared: Shared,
    },
    /// Take an instance out; requests under way finish
    Remove {
        /// The instance's id, as listed
        id: String,
        #[command(flatten)]
        shared: Shared,
    },
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.action {
        Action::List { shared } => {
            let listed = AdminClient::new(&shared.admin)?.call(Method::GET, "/api/instances", None)?;
            if shared.json { output::print_json(&listed) } else { output::print(&table(&listed)) }
        }
        Action::Add { url, id, weight, max_in_flight, shared } => {
            let given = json!({
                "url": url, "id": id, "weight": weight, "max_in_flight": max_in_flight,
                "endpoint": shared.endpoint, "variant": shared.variant,
            });
            change(&shared, Method::POST, "/api/instances", Some(&without_nulls(given)), "added")
        }
        Action::Drain { id, undo, shared } => {
            let method = if undo { Method::DELETE } else { Method::POST };
            let done = if undo { "in service again" } else { "draining" };
            let path = format!("/api/instances/{}/drain{}", segment(&id), query(&shared));
            change(&shared, method, &path, None, done)
        }
        Action::Remove { id, shared } => {
            let path = format!("/api/instances/{}{}", segment(&id), query(&shared));
            change(&shared, Method::DELETE, &path, None, "removed")
        }
    }
}

fn change(shared: &Shared, method: Method, path: &str, body: Option<&Value>, done: &str) -> Outcome {
    let changed = AdminClient::new(&shared.admin)?.call(method, path, body)?;
    if shared.json {
        return output::print_json(&changed);
    }
    let text = |key: &str| changed.get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
    output::print(&format!("{done}: {} in {}/{}\n", text("id"), text("endpoint"), text("variant")))
}

fn query(shared: &Shared) -> String {
    let pairs = [("endpoint", &shared.endpoint), ("variant", &shared.variant)];
    let given: Vec<String> =
        pairs.iter().filter_map(|(key, value)| Some(format!("{key}={}", segment(value.as_ref()?)))).collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}

fn without_nulls(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
}

fn table(listed: &Value) -> String {
    let rows = listed.get("instances").and_then(Value::as_array).cloned().unwrap_or_default();
    if rows.is_empty() {
        return "no instances\n".to_owned();
    }
    let columns = ["endpoint", "variant", "id", "availability", "in flight", "weight", "origin", "models"];
    let of_engine = ["kind", "running", "waiting", "kv_cache_usage"];
    let mut table = Table::new([
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
    ]);
    let heading: [&str; 4] = ["engine", "running", "waiting", "KV cache"];
    table.row(columns.iter().chain(&heading).copied().collect::<Vec<_>>());
    for row in &rows {
        let cells = columns.map(|column| cell(row.get(column.replace(' ', "_").as_str())));
        let engine = of_engine.map(|name| match (name, row.pointer(&format!("/engine/{name}"))) {
            ("kv_cache_usage", Some(Value::Number(usage))) => {
                format!("{:.1}%", usage.as_f64().unwrap_or_default() * 100.0)
            }
            (_, value) => cell(value),
        });
        table.row(cells.into_iter().chain(engine).collect::<Vec<_>>());
    }
    table.to_string() + "\n"
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| cell(Some(item))).collect::<Vec<_>>().join(", "),
        Some(other) => other.to_string(),
    }
}
