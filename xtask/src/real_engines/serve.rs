//! `isotherm serve` in front of the replicas.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use super::binary::Binary;
use crate::failure::Failure;

/// A running router. Gone when dropped.
#[derive(Debug)]
pub(crate) struct Serve {
    child: Child,
    /// `HOST:PORT` of its data plane.
    pub(crate) authority: String,
    /// URL of its admin plane.
    pub(crate) admin: String,
}

impl Serve {
    pub(crate) fn start(binary: &Binary, urls: &[String], strategy: &str, options: &[&str]) -> Result<Serve, Failure> {
        let mut command = binary.command();
        command.args(["serve", "--port", "0"]).args(options);
        command.args(["--admin-port", "0", "--expose-decisions", "--strategy", strategy]);
        for (ordinal, url) in urls.iter().enumerate() {
            command.args(["--instance", &format!("replica-{ordinal}={url}")]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| Failure::Failed(format!("isotherm serve did not start: {error}")))?;
        let stdout = child.stdout.take();
        let mut serve = Serve { child, authority: String::new(), admin: String::new() };
        let mut lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok);
        let ready = lines.find_map(|line| {
            if let Some(admin) = line.trim().strip_prefix("admin ") {
                serve.admin = admin.split_whitespace().next().unwrap_or_default().to_owned();
            }
            line.strip_prefix("ready http://").map(|authority| authority.trim().to_owned())
        });
        serve.authority =
            ready.ok_or_else(|| Failure::Failed("isotherm serve ended before it was ready".to_owned()))?;
        Ok(serve)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
