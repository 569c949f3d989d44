//! `isotherm top`: a running router at a glance, in a terminal.

mod screen;
mod view;

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use clap::Args;
use hyper::Method;
use serde_json::Value;

use crate::admin_client::{AdminClient, AdminFlags};
use crate::exit::{Failure, Outcome};
use crate::output;
use screen::{Pressed, Screen};

/// The terminal's size where it does not tell.
const USUAL_WIDTH: usize = 100;

/// Watch a running router: rates, instances, hot prefixes, decisions
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm top                       refreshes every 2 seconds; q or ctrl-c ends it
  isotherm top --once                prints once, for logs and scripts
  isotherm top --json | jq .variants[0].minute

Figures are those of the last minute, shares and reasons those of the last 15, pictures those of the last five. What
RANDOM would hit is told where diagnostics are on. Hot prefixes are told by the hash of their
beginning, as in x-isotherm-key.")]
pub(crate) struct Arguments {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=25))]
    every: u8,

    /// Print once and end; so it is where the output is no terminal
    #[arg(long)]
    once: bool,

    /// Print the snapshot as JSON and end
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    admin: AdminFlags,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let client = AdminClient::new(&arguments.admin)?;
    let look = || client.call(Method::GET, "/api/overview?points=60&requests=20", None);
    if arguments.json {
        return output::print_json(&look()?);
    }
    if arguments.once || !stdout().is_terminal() {
        return output::print(&view::render(&look()?, &arguments.admin.admin, USUAL_WIDTH));
    }
    watch(&arguments, look)
}

fn watch(arguments: &Arguments, look: impl Fn() -> Result<Value, Failure>) -> Outcome {
    // Whoever mistyped the address learns of it before the screen is taken.
    let mut last = look()?;
    let every = Duration::from_secs(arguments.every.into());
    let mut screen = Screen::take().map_err(|error| Failure::running("terminal", error))?;
    let mut trouble = None;
    loop {
        let mut text = view::render(&last, &arguments.admin.admin, screen.width());
        if let Some(trouble) = &trouble {
            text = format!("STALE: {trouble}\n{text}");
        }
        screen.show(&text).map_err(|error| Failure::running("terminal", error))?;
        if screen.wait(every).map_err(|error| Failure::running("terminal", error))? == Pressed::Quit {
            return Ok(());
        }
        // A router that restarts is looked for until it is back.
        match look() {
            Ok(overview) => (last, trouble) = (overview, None),
            Err(Failure::Usage(text) | Failure::Running(text) | Failure::Invalid(text)) => trouble = Some(text),
        }
    }
}
