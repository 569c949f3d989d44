//! Emulated engines as processes of their own, and what they saw.

use serde_json::Value;

use crate::{Client, Running};

/// Some `isotherm engine` processes.
#[derive(Debug)]
pub struct Engines {
    engines: Vec<Running>,
    options: Vec<String>,
}

/// One request as an engine saw it.
#[derive(Debug, Clone)]
pub struct ObservedRequest {
    pub path: String,
    /// Milliseconds since the engine's start.
    pub arrived_ms: f64,
    /// `None` while it runs.
    pub ended_ms: Option<f64>,
    /// The client left before the answer was complete.
    pub aborted: bool,
}

impl Engines {
    /// Starts that many, each on a free port.
    pub fn start<S: AsRef<str>>(count: usize, options: &[S]) -> Engines {
        let options: Vec<String> = options.iter().map(|option| option.as_ref().to_owned()).collect();
        let engines = (0..count).map(|_| start_engine(0, &options)).collect();
        Engines { engines, options }
    }

    pub fn urls(&self) -> Vec<String> {
        self.engines.iter().map(|engine| engine.url().to_owned()).collect()
    }

    /// The id that [`Engines::instance_flags`] gives an engine. It does not depend on the port, so that a test's
    /// prefixes have the same homes each time.
    pub fn id(index: usize) -> String {
        format!("engine-{index}")
    }

    /// `--instance ID=URL` for each of them.
    pub fn instance_flags(&self) -> Vec<String> {
        let flags = self.engines.iter().enumerate();
        flags
            .flat_map(|(index, engine)| ["--instance".to_owned(), format!("{}={}", Self::id(index), engine.url())])
            .collect()
    }

    /// The items of a configuration's list of instances, in the same way.
    pub fn listed(&self) -> String {
        let urls = self.engines.iter().map(Running::url).enumerate();
        urls.map(|(index, url)| format!("{{ id: {}, url: '{url}' }}", Self::id(index))).collect::<Vec<_>>().join(", ")
    }

    /// kill −9.
    pub fn kill(&mut self, index: usize) {
        self.engines[index].kill();
    }

    /// Starts a killed one again on its port.
    pub fn restart(&mut self, index: usize) {
        let port = self.engines[index].port();
        self.engines[index] = start_engine(port, &self.options);
    }
}

fn start_engine(port: u16, options: &[String]) -> Running {
    let mut arguments = vec!["engine".to_owned(), "--port".to_owned(), port.to_string()];
    arguments.extend_from_slice(options);
    Running::start(&arguments)
}

/// The generation requests that an engine saw lately; routers ask it other things, too.
pub async fn engine_requests(url: &str) -> Vec<ObservedRequest> {
    let report = Client::new(url).get("/emulator/requests").await.ok().json();
    let requests = report["requests"].as_array().expect("a list of requests");
    let seen = requests.iter().filter(|request| request["method"] == "POST").map(|request| ObservedRequest {
        path: request["path"].as_str().expect("a path").to_owned(),
        arrived_ms: request["arrived_ms"].as_f64().expect("a time"),
        ended_ms: request["ended_ms"].as_f64(),
        aborted: request["aborted"].as_bool().expect("yes or no"),
    });
    seen.filter(|request| request.path.starts_with("/v1/") || request.path == "/invocations").collect()
}

/// How many of the requests ran at the same time at most.
pub fn highest_concurrency(requests: &[ObservedRequest]) -> usize {
    let overlaps = |at: f64| {
        requests.iter().filter(|other| other.arrived_ms <= at && other.ended_ms.is_none_or(|ended| ended > at)).count()
    };
    requests.iter().map(|request| overlaps(request.arrived_ms)).max().unwrap_or(0)
}

/// Switches faults of an engine on.
pub async fn set_faults(url: &str, faults: &Value) {
    let answer = Client::new(url).post("/emulator/faults", faults).await;
    assert!(answer.status.is_success(), "{}", answer.text());
}

#[cfg(test)]
mod tests {
    use super::{ObservedRequest, highest_concurrency};

    #[test]
    fn counts_what_overlaps_and_not_what_follows() {
        let request = |arrived_ms, ended_ms| ObservedRequest {
            path: "/v1/chat/completions".to_owned(),
            arrived_ms,
            ended_ms,
            aborted: false,
        };
        let requests = [request(0.0, Some(10.0)), request(5.0, Some(20.0)), request(10.0, None)];
        assert_eq!(highest_concurrency(&requests), 2);
        assert_eq!(highest_concurrency(&[]), 0);
    }
}
