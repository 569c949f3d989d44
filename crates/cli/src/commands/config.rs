//! `isotherm config`: check a configuration, print its schema, make keys.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use isotherm_config::{Auth, Config, Environment, InstanceSource, NewKey, NewSigningKey, Overrides, ServerTls};
use serde_json::json;

use crate::exit::{Failure, Outcome};
use crate::output;

/// Check a configuration, print its JSON Schema, make a client's key
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  isotherm config check isotherm.yaml
  isotherm config schema > isotherm.schema.json
  isotherm config key alice >> /etc/isotherm/keys
  isotherm config key bob --aws >> /etc/isotherm/keys      for the AWS CLI, boto3 and SDKs")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Read a configuration as `serve` would, and say what it means or everything that is wrong with it
    Check {
        /// The configuration file
        file: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the configuration file, for editors
    Schema,
    /// Make a key for a client: its line for the keys file goes to standard output, the key itself to standard error
    Key {
        /// Whose key it is, as it appears in the access log
        name: String,
        /// Make a key to sign with, for AWS's clients: an access key's id and its secret
        #[arg(long)]
        aws: bool,
        /// Print both as one JSON object instead
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.action {
        Action::Check { file, json } => check(&file, json),
        Action::Schema => output::print_json(&isotherm_config::schema()),
        Action::Key { name, aws: true, json } => signing_key(&name, json),
        Action::Key { name, aws: false, json } => key(&name, json),
    }
}

fn check(file: &std::path::Path, json: bool) -> Outcome {
    match Config::load(Some(file), &Environment::of_process(), &Overrides::default()) {
        Ok(config) if json => {
            let warnings = config.warnings(SystemTime::now());
            output::print_json(
                &json!({ "valid": true, "problems": [], "warnings": warnings, "summary": summary(&config) }),
            )
        }
        Ok(config) => {
            output::print(&format!("{} is valid\n\n{}\n", file.display(), summary(&config).join("\n")))?;
            for warning in config.warnings(SystemTime::now()) {
                output::print(&format!("\nwarning: {warning}\n"))?;
            }
            Ok(())
        }
        Err(error) => {
            if json {
                let problems: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
                output::print_json(&json!({ "valid": false, "problems": problems }))?;
            }
            Err(Failure::Usage(error.to_string()))
        }
    }
}

/// What a configuration amounts to, a line per listener and variant.
fn summary(config: &Config) -> Vec<String> {
    let keys = match &config.auth {
        Auth::None => "no keys".to_owned(),
        Auth::Keys { file, ring } => format!("{} keys from {}", ring.len(), file.display()),
    };
    let within = |tls: &Option<ServerTls>| match tls {
        None => "in the clear",
        Some(tls) if tls.asks_for_certificates() => "TLS, clients show certificates",
        Some(_) => "TLS",
    };
    let mut lines = vec![
        format!("  listen    {} ({keys}, {})", config.listen, within(&config.tls)),
        format!("  admin     {} ({})", config.admin.listen, within(&config.admin.tls)),
    ];
    for endpoint in &config.endpoints {
        for variant in &endpoint.variants {
            let named = variant.instances.iter().filter(|entry| matches!(entry.source, InstanceSource::Dns { .. }));
            let (named, all) = (named.count(), variant.instances.len());
            lines.push(format!(
                "  variant   {}/{}: {}, {} by URL, {named} by DNS name",
                endpoint.name,
                variant.name,
                variant.routing.strategy.name(),
                all - named,
            ));
        }
    }
    if let Some(aws) = &config.aws {
        let (account, region, data_dir) = (&aws.account_id, &aws.region, aws.data_dir.display());
        lines.push(format!(
            "  aws       account {account}, {region}, {} providers, kept in {data_dir}",
            aws.providers.len()
        ));
    }
    lines
}

fn key(name: &str, json: bool) -> Outcome {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| Failure::running("random numbers", error))?;
    let key = NewKey::from_random(name, random).map_err(|error| Failure::Usage(error.to_string()))?;
    if json {
        return output::print_json(&json!({ "key": key.text(), "line": key.line() }));
    }
    output::print(&format!("{}\n", key.line()))?;
    eprintln!("key for {name}, shown once: {}", key.text());
    Ok(())
}

fn signing_key(name: &str, json: bool) -> Outcome {
    let mut random = [0; 46];
    getrandom::fill(&mut random).map_err(|error| Failure::running("random numbers", error))?;
    let key = NewSigningKey::from_random(name, random).map_err(|error| Failure::Usage(error.to_string()))?;
    let (id, secret) = (key.access_key(), key.secret());
    if json {
        return output::print_json(&json!({ "access_key_id": id, "secret_access_key": secret, "line": key.line() }));
    }
    output::print(&format!("{}\n", key.line()))?;
    eprintln!("key for {name}: AWS_ACCESS_KEY_ID={id} AWS_SECRET_ACCESS_KEY={secret}");
    eprintln!("the keys file holds the secret, too: keep it to yourself (chmod 600)");
    Ok(())
}
