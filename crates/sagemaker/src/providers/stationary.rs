//! Engines that run already: an instance is a URL of a list, taken while the instance lives and given back after.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use isotherm_config::InstanceUrl;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::ready::until_ready;
use super::{Doing, InstanceOrder, Provider, Reached, Standing};

/// How long an engine that should be running may take to answer, where the endpoint does not say.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Takes instances from a list of running engines.
#[derive(Debug)]
pub struct StaticProvider {
    settings: isotherm_config::StaticProvider,
    taken: Mutex<HashMap<String, Taken>>,
}

#[derive(Debug)]
struct Taken {
    url: Option<InstanceUrl>,
    standing: watch::Receiver<Standing>,
    asking: Option<JoinHandle<()>>,
}

impl StaticProvider {
    /// A provider of these engines, all free.
    pub fn new(settings: isotherm_config::StaticProvider) -> StaticProvider {
        StaticProvider { settings, taken: Mutex::default() }
    }

    /// The engine that an instance had before, else the first free one.
    fn free(&self, taken: &HashMap<String, Taken>, previous: Option<&InstanceUrl>) -> Option<InstanceUrl> {
        let is_free = |url: &&InstanceUrl| taken.values().all(|one| one.url.as_ref() != Some(*url));
        let before = self.settings.urls.iter().find(|url| Some(*url) == previous).filter(is_free);
        before.or_else(|| self.settings.urls.iter().find(is_free)).cloned()
    }
}

impl Provider for StaticProvider {
    fn start(&self, order: InstanceOrder) -> watch::Receiver<Standing> {
        let mut taken = self.taken.lock();
        if let Some(present) = taken.get(&order.key) {
            return present.standing.clone();
        }
        let (sender, standing) = watch::channel(Standing::Starting);
        let url = self.free(&taken, order.previous.as_ref());
        let asking = match &url {
            None => {
                let taken = match self.settings.urls.len() {
                    1 => String::from("The one engine of the static provider is taken"),
                    several => format!("All {several} engines of the static provider are taken"),
                };
                let reason = format!("{taken}: add URLs to aws.providers, or ask for fewer instances.");
                sender.send_replace(Standing::Failed(reason));
                None
            }
            Some(url) => {
                let (api_key, tls) = (self.settings.api_key.clone(), self.settings.tls.clone());
                let reached = Reached { url: url.clone(), api_key, tls, health: None };
                let limit = order.start_timeout.unwrap_or(ANSWER_WITHIN);
                Some(tokio::spawn(ask(reached, limit, sender)))
            }
        };
        taken.insert(order.key, Taken { url, standing: standing.clone(), asking });
        standing
    }

    fn stop(&self, key: String) -> Doing<'_> {
        if let Some(Taken { asking: Some(asking), .. }) = self.taken.lock().remove(&key) {
            asking.abort();
        }
        Box::pin(async {})
    }

    fn retain(&self, _: &HashSet<String>) -> Doing<'_> {
        Box::pin(async {})
    }

    fn shutdown(&self) -> Doing<'_> {
        self.taken.lock().clear();
        Box::pin(async {})
    }
}

async fn ask(reached: Reached, limit: Duration, standing: watch::Sender<Standing>) {
    let outcome = match until_ready(&reached, limit).await {
        Ok(()) => Standing::Running(reached),
        Err(problem) => Standing::Failed(format!(
            "{} did not answer within {} s ({problem}): start the engine there, or take the URL out of aws.providers.",
            reached.url,
            limit.as_secs()
        )),
    };
    standing.send_replace(outcome);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(urls: &[&str]) -> StaticProvider {
        let urls = urls.iter().map(|url| url.parse().unwrap()).collect();
        StaticProvider::new(isotherm_config::StaticProvider { urls, api_key: None, tls: None })
    }

    fn order(key: &str) -> InstanceOrder {
        InstanceOrder { key: key.to_owned(), start_timeout: Some(Duration::from_secs(1)), ..InstanceOrder::default() }
    }

    async fn decided(mut standing: watch::Receiver<Standing>) -> Standing {
        standing.wait_for(|standing| *standing != Standing::Starting).await.unwrap().clone()
    }

    #[tokio::test]
    async fn engines_are_taken_and_given_back_and_each_returns_to_who_had_it() {
        let engines: Vec<_> = (0..2).map(|_| isotherm_emulator::start(Default::default()).unwrap()).collect();
        let urls: Vec<_> = engines.iter().map(isotherm_emulator::RunningEmulator::base_url).collect();
        let provider = provider(&[&urls[0], &urls[1]]);
        let second = InstanceOrder { previous: Some(urls[1].parse().unwrap()), ..order("b") };
        let Standing::Running(b) = decided(provider.start(second)).await else { panic!() };
        let Standing::Running(a) = decided(provider.start(order("a"))).await else { panic!() };
        assert_eq!([a.url.to_string(), b.url.to_string()], [urls[0].as_str(), &urls[1]]);

        let Standing::Failed(reason) = decided(provider.start(order("c"))).await else { panic!() };
        assert!(reason.starts_with("All 2 engines of the static provider are taken: add URLs"), "{reason}");
        provider.stop("c".to_owned()).await;
        provider.stop("b".to_owned()).await;
        let Standing::Running(c) = decided(provider.start(order("c"))).await else { panic!() };
        assert_eq!(c.url.to_string(), urls[1]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_does_not_answer_fails_with_what_to_do() {
        let provider = provider(&["http://127.0.0.1:1"]);
        let taken = provider.start(order("first"));
        let Standing::Failed(reason) = decided(provider.start(order("second"))).await else { panic!() };
        assert!(reason.starts_with("The one engine of the static provider is taken: add URLs"), "{reason}");
        provider.stop("first".to_owned()).await;
        drop(taken);
        let Standing::Failed(reason) = decided(provider.start(order("a"))).await else { panic!() };
        assert!(reason.starts_with("http://127.0.0.1:1 did not answer within 1 s (no connection: "), "{reason}");
    }
}
