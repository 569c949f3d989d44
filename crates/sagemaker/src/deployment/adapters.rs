//! Adapters: loaded on the copies of their base component by the engines' own call, and served only where they are.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use super::ordered::Ordered;
use super::orders::copy_key;
use super::progress::Unit;
use super::report::finish_component;
use super::rollout::End;
use super::state::{ComponentState, EndpointState};
use crate::providers::{Reached, call};
use crate::records::{ComponentTransition, InferenceComponentRecord};
use crate::shapes::Timestamp;

/// How long an engine may take to load an adapter.
const LOAD: Duration = Duration::from_secs(300);
/// What vLLM calls its way to load one (vllm/entrypoints/openai, `VLLM_ALLOW_RUNTIME_LORA_UPDATING`).
const LOAD_PATH: &str = "/v1/load_lora_adapter";
/// And to let it go.
const UNLOAD_PATH: &str = "/v1/unload_lora_adapter";

/// Which adapter is loaded on which copy. Not kept: an engine that has one already says so.
#[derive(Debug)]
pub(super) struct Adapters {
    wake: Arc<Notify>,
    /// Where `s3://BUCKET/KEY` lies on this machine, as `BUCKET/KEY`.
    artifacts: Option<PathBuf>,
    /// By the adapter's key and the copy's.
    loads: HashMap<(String, String), Load>,
}

#[derive(Debug)]
struct Load {
    /// Where the copy is reached: elsewhere it is another engine, which holds nothing yet.
    reached: Reached,
    path: String,
    outcome: Arc<Mutex<Option<Result<(), String>>>>,
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Load,
    Unload,
}

impl Adapters {
    pub(super) fn new(artifacts: Option<PathBuf>, wake: Arc<Notify>) -> Adapters {
        Adapters { wake, artifacts, loads: HashMap::new() }
    }

    /// Loads the adapter at this place of an endpoint's components where it is missing, and says in its record how that
    /// went.
    pub(super) fn follow(&mut self, state: &mut EndpointState, at: usize, ordered: &Ordered, now: Timestamp) {
        let Some(base) = base_of(state, at).cloned() else { return };
        let adapter = &mut state.components[at];
        let copies: Vec<_> = base.progress.units.iter().filter(|unit| unit.serves()).collect();
        let reached = |unit: &Unit| ordered.reached(&copy_key(&base.record, unit)).cloned();
        let copies: Vec<_> =
            copies.into_iter().filter_map(|unit| Some((copy_key(&base.record, unit), reached(unit)?))).collect();
        match &adapter.record.transition {
            Some(ComponentTransition::Delete { .. }) => adapter.gone = self.forget(&adapter.record, &copies),
            transition => {
                let target = match transition {
                    Some(ComponentTransition::Update { target, .. }) => target,
                    _ => &adapter.record.serving,
                };
                let container = target.specifications.first().and_then(|it| it.container.as_ref());
                let artifact = container.and_then(|it| it.artifact_url.clone()).unwrap_or_default();
                let outcome = self.load(&adapter.record, &self.local(&artifact), &copies);
                if let (Some(end), Some(_)) = (outcome, transition) {
                    finish_component(&mut adapter.record, &end, &adapter.progress, now);
                }
            }
        }
    }

    /// The ids of the base's copies that hold an adapter.
    pub(super) fn loaded_on(&self, state: &EndpointState, at: usize) -> Vec<String> {
        let Some(base) = base_of(state, at) else { return Vec::new() };
        let adapter = state.components[at].record.key();
        let holds = |unit: &&Unit| {
            let load = self.loads.get(&(adapter.clone(), copy_key(&base.record, unit)));
            unit.serves() && load.is_some_and(|load| matches!(*load.outcome.lock(), Some(Ok(()))))
        };
        base.progress.units.iter().filter(holds).map(Unit::id).collect()
    }

    /// Whether an adapter is being loaded on a copy of its base.
    pub(super) fn is_loading(&self, state: &EndpointState, at: usize) -> bool {
        let Some(base) = base_of(state, at) else { return false };
        let adapter = state.components[at].record.key();
        let is_loading = |unit: &Unit| {
            let load = self.loads.get(&(adapter.clone(), copy_key(&base.record, unit)));
            load.is_some_and(|load| load.outcome.lock().is_none())
        };
        base.progress.units.iter().any(is_loading)
    }

    /// Loads an adapter on copies that don't hold it. How it stands once all have answered.
    fn load(&mut self, adapter: &InferenceComponentRecord, path: &str, copies: &[(String, Reached)]) -> Option<End> {
        let key = adapter.key();
        self.loads.retain(|(of, on), _| *of != key || copies.iter().any(|(copy, _)| copy == on));
        let mut all_answered = true;
        let mut problem = None;
        for (copy, reached) in copies {
            let entry = (key.clone(), copy.clone());
            let is_it = |load: &&Load| load.reached == *reached && load.path == path;
            if self.loads.get(&entry).filter(is_it).is_none() {
                let replaces = self.loads.get(&entry).is_some_and(|load| load.reached == *reached);
                let load = self.ask(&adapter.identity.name, path, reached, Wish::Load, replaces);
                self.loads.insert(entry.clone(), load);
            }
            match self.loads.get(&entry).and_then(|load| load.outcome.lock().clone()) {
                None => all_answered = false,
                Some(Ok(())) => {}
                Some(Err(error)) => problem = Some(error),
            }
        }
        match problem {
            Some(problem) => Some(End::Stuck(problem)),
            None => all_answered.then_some(End::Done),
        }
    }

    /// Lets an adapter go from all copies; true once all have answered, whatever they answered.
    fn forget(&mut self, adapter: &InferenceComponentRecord, copies: &[(String, Reached)]) -> bool {
        let key = adapter.key();
        let mut all_answered = true;
        for (copy, reached) in copies {
            // Another path than any to load from.
            let entry = (key.clone(), copy.clone());
            if self.loads.get(&entry).is_some_and(|load| !load.path.is_empty()) {
                let load = self.ask(&adapter.identity.name, "", reached, Wish::Unload, false);
                self.loads.insert(entry.clone(), load);
            }
            all_answered &= self.loads.get(&entry).is_none_or(|load| load.outcome.lock().is_some());
        }
        if all_answered {
            self.loads.retain(|(of, _), _| *of != key);
        }
        all_answered
    }

    fn ask(&self, name: &str, path: &str, reached: &Reached, wish: Wish, replaces: bool) -> Load {
        let outcome = Arc::default();
        let load = Load { reached: reached.clone(), path: path.to_owned(), outcome: Arc::clone(&outcome) };
        let (name, path, reached, wake) = (name.to_owned(), path.to_owned(), reached.clone(), Arc::clone(&self.wake));
        tokio::spawn(async move {
            if replaces {
                let _ = tell(&name, &path, &reached, Wish::Unload).await;
            }
            let answer = tell(&name, &path, &reached, wish).await;
            *outcome.lock() = Some(answer);
            wake.notify_one();
        });
        load
    }

    /// What an engine on this machine is to load for an artifact's URL: a file that lies here, a repository of Hugging
    /// Face's by its name, else the URL itself.
    fn local(&self, artifact: &str) -> String {
        let rest = artifact.strip_prefix("s3://").filter(|rest| stays_below(rest));
        let here = rest.and_then(|rest| Some(self.artifacts.as_ref()?.join(rest)));
        match here.filter(|path| path.exists()) {
            Some(path) => path.display().to_string(),
            // What is no repository's name could be a path on the engine's machine.
            None => {
                let name = artifact.strip_prefix("https://huggingface.co/").filter(|name| stays_below(name));
                name.unwrap_or(artifact).to_owned()
            }
        }
    }
}

/// Whether a path leads nowhere but below where it begins.
fn stays_below(path: &str) -> bool {
    std::path::Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

fn base_of(state: &EndpointState, at: usize) -> Option<&ComponentState> {
    let name = state.components[at].record.base()?.to_owned();
    let is_it = |one: &&ComponentState| one.record.identity.name.eq_ignore_ascii_case(&name);
    state.components.iter().find(is_it).filter(|base| base.record.base().is_none())
}

async fn tell(name: &str, path: &str, reached: &Reached, wish: Wish) -> Result<(), String> {
    let (at, body) = match wish {
        Wish::Load => (LOAD_PATH, json!({ "lora_name": name, "lora_path": path })),
        Wish::Unload => (UNLOAD_PATH, json!({ "lora_name": name })),
    };
    match call(reached, Method::POST, at, Bytes::from(body.to_string()), LOAD).await {
        Ok((status, _)) if status.is_success() => Ok(()),
        Ok((status, body)) => {
            let text = String::from_utf8_lossy(&body);
            // It also answers 404 where it finds no adapter, and then says so.
            let is_unknown = status == StatusCode::METHOD_NOT_ALLOWED
                || status == StatusCode::NOT_FOUND && !text.to_lowercase().contains("adapter");
            if wish == Wish::Load && is_unknown {
                return Err(format!(
                    "The engine at {} can't load adapters while it runs: it knows no POST {LOAD_PATH}. Start vLLM with \
                     --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True.",
                    reached.url
                ));
            }
            // Loaded by an earlier life of this router.
            if wish == Wish::Load && text.contains("already") {
                return Ok(());
            }
            Err(format!("The engine at {} did not load adapter {name} from {path}: {status} {text}", reached.url))
        }
        Err(error) => Err(format!("The engine at {} did not load adapter {name} from {path}: {error}", reached.url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_told_of_files_and_repositories_in_their_own_words() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("bucket/tuned")).unwrap();
        let adapters = Adapters::new(Some(folder.path().to_owned()), Arc::default());
        let here = folder.path().join("bucket/tuned").display().to_string();
        for (artifact, told) in [
            ("s3://bucket/tuned", &*here),
            ("s3://bucket/elsewhere", "s3://bucket/elsewhere"),
            ("s3://bucket/../bucket/tuned", "s3://bucket/../bucket/tuned"),
            ("s3:///etc", "s3:///etc"),
            ("https://huggingface.co/org/tuned", "org/tuned"),
            ("https://huggingface.co//etc/tuned", "https://huggingface.co//etc/tuned"),
            ("https://huggingface.co/../etc/tuned", "https://huggingface.co/../etc/tuned"),
            ("https://example.com/tuned", "https://example.com/tuned"),
        ] {
            assert_eq!(adapters.local(artifact), told);
        }
    }

    #[tokio::test]
    async fn an_engine_that_knows_no_adapters_is_told_of_with_what_to_do() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request).await.unwrap();
            let answer = "HTTP/1.1 404 x\r\ncontent-length: 22\r\n\r\n{\"detail\":\"Not Found\"}";
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let reached = Reached { url, api_key: None, tls: None, health: None };
        let error = tell("tuned", "/tuned", &reached, Wish::Load).await.unwrap_err();
        assert!(error.contains("can't load adapters while it runs") && error.contains("--enable-lora"), "{error}");
    }
}
