//! One emulator on its thread: configuration, engine, faults and what it remembers.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use isotherm_engine_model::{CacheScope, ChainBuilder, EngineRequest, RequestId, Statistics, Token};
use tokio::sync::Notify;

use crate::answer::{Answer, LengthWish};
use crate::config::EmulatorConfig;
use crate::driver::{Driver, Ticket};
use crate::failure::Failure;
use crate::faults::{ActiveFaults, Faults, RequestFault};
use crate::generation::{Batch, Generation};
use crate::lag::LagRecorder;
use crate::meters::Meters;
use crate::observed::ObservedRequests;
use crate::port::Port;
use crate::response_store::ResponseStore;
use crate::sessions::Sessions;
use crate::tasks::Tasks;
use crate::tools::ToolChoice;

/// State shared by everything that one emulator does; lives on one thread.
#[derive(Debug)]
pub(crate) struct Emulator {
    config: EmulatorConfig,
    port: Port,
    driver: RefCell<Driver>,
    faults: RefCell<ActiveFaults>,
    faults_changed: Notify,
    observed: Rc<RefCell<ObservedRequests>>,
    responses: RefCell<ResponseStore>,
    sessions: RefCell<Sessions>,
    /// Names of the adapters served now.
    adapters: RefCell<Vec<String>>,
    tasks: Tasks,
    lag: Arc<LagRecorder>,
    started_at: SystemTime,
    /// Tells the ids of this emulator's life from those of any other.
    identity: u64,
    ids_given: Cell<u64>,
}

/// What the engine is asked to generate.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    /// Name of the model or adapter, as the client spelt it; absent: the model.
    pub(crate) model: Option<&'a str>,
    pub(crate) cache_salt: Option<&'a str>,
    pub(crate) prompts: Vec<Vec<Token>>,
    /// Answers to each prompt, at least 1; 0 tokens long where `wish` is absent.
    pub(crate) choices: usize,
    pub(crate) wish: Option<LengthWish>,
    pub(crate) tool: Option<&'a ToolChoice>,
}

impl Emulator {
    pub(crate) fn new(config: EmulatorConfig, port: Port, lag: Arc<LagRecorder>, identity: u64) -> Self {
        let now = Instant::now();
        let mut driver = Driver::new(config.profile.clone(), config.speed, now, Arc::clone(&lag));
        driver.slow_down(now, config.faults.slow_factor.get());
        if config.faults.refuse_connections {
            port.close();
        }
        Self {
            port,
            driver: RefCell::new(driver),
            faults: RefCell::new(ActiveFaults::new(config.faults.clone(), now)),
            faults_changed: Notify::new(),
            observed: Rc::new(RefCell::new(ObservedRequests::new(now, config.observed_requests))),
            responses: RefCell::new(ResponseStore::new(config.stored_response_bytes)),
            sessions: RefCell::new(Sessions::lasting(config.session_lifetime)),
            adapters: RefCell::new(config.adapters.clone()),
            tasks: Tasks::default(),
            lag,
            started_at: SystemTime::now(),
            identity,
            ids_given: Cell::new(0),
            config,
        }
    }

    pub(crate) fn config(&self) -> &EmulatorConfig {
        &self.config
    }

    pub(crate) fn port(&self) -> &Port {
        &self.port
    }

    pub(crate) fn driver(&self) -> &RefCell<Driver> {
        &self.driver
    }

    pub(crate) fn observed(&self) -> &Rc<RefCell<ObservedRequests>> {
        &self.observed
    }

    pub(crate) fn responses(&self) -> &RefCell<ResponseStore> {
        &self.responses
    }

    pub(crate) fn sessions(&self) -> &RefCell<Sessions> {
        &self.sessions
    }

    /// Work that ends with this emulator.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(crate) fn lag(&self) -> &LagRecorder {
        &self.lag
    }

    pub(crate) fn started_at(&self) -> SystemTime {
        self.started_at
    }

    /// The engine's figures as of now.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut driver = self.driver.borrow_mut();
        driver.advance(Instant::now());
        driver.statistics()
    }

    pub(crate) fn meters(&self) -> Ref<'_, Meters> {
        Ref::map(self.driver.borrow(), Driver::meters)
    }

    /// Puts the prompts of an order into the engine. On refusal of one, none of them stays.
    pub(crate) fn generate(self: &Rc<Self>, order: &Order<'_>) -> Result<Batch, Failure> {
        let adapter = self.adapter(order.model)?;
        // A salt of its own is found by nobody.
        let uncached = self.faults().get().no_prefix_caching.then(|| self.fresh_id("uncached"));
        let cache_salt = uncached.as_deref().or(order.cache_salt);
        let scope = CacheScope { model: &self.config.model, adapter, cache_salt };
        let mut generations = Vec::with_capacity(order.prompts.len() * order.choices);
        for prompt in &order.prompts {
            let prompt_tokens = self.checked_length(prompt, order.wish.as_ref())?;
            let room = self.config.max_model_len - prompt_tokens;
            let mut chain = ChainBuilder::new(&scope);
            chain.push_tokens(prompt);
            for choice in 0..order.choices {
                let answer = match order.wish {
                    Some(wish) => Answer::to_prompt(self.config.seed, prompt, choice, wish, room, order.tool),
                    None => Answer::none(),
                };
                let ticket = self.submit(chain.clone(), prompt_tokens, &answer)?;
                generations.push(Generation::new(Rc::clone(self), ticket, answer, prompt_tokens));
            }
        }
        Ok(Batch::new(generations, order.choices))
    }

    pub(crate) fn abort(&self, id: RequestId) {
        self.driver.borrow_mut().abort(Instant::now(), id);
    }

    /// Whether the model is served here; `None` stands for the model itself.
    pub(crate) fn adapter<'a>(&self, model: Option<&'a str>) -> Result<Option<&'a str>, Failure> {
        match model {
            None | Some("") => Ok(None),
            Some(name) if name == self.config.model => Ok(None),
            Some(name) if self.adapters.borrow().iter().any(|adapter| adapter == name) => Ok(Some(name)),
            Some(name) => Err(Failure::UnknownModel(name.to_owned())),
        }
    }

    /// The adapters served now.
    pub(crate) fn adapters(&self) -> Vec<String> {
        self.adapters.borrow().clone()
    }

    /// Serves an adapter; false if it does already.
    pub(crate) fn add_adapter(&self, name: &str) -> bool {
        let mut adapters = self.adapters.borrow_mut();
        let is_new = !adapters.iter().any(|adapter| adapter == name);
        if is_new {
            adapters.push(name.to_owned());
        }
        is_new
    }

    /// Serves an adapter no more; false if it did not.
    pub(crate) fn remove_adapter(&self, name: &str) -> bool {
        let mut adapters = self.adapters.borrow_mut();
        let before = adapters.len();
        adapters.retain(|adapter| adapter != name);
        adapters.len() < before
    }

    /// Replaces all faults, at once. A port that cannot be opened again now is opened by its listener when it can.
    pub(crate) fn set_faults(&self, faults: Faults) {
        let now = Instant::now();
        if faults.refuse_connections {
            self.port.close();
        } else if let Err(error) = self.port.open() {
            tracing::warn!(address = %self.port.address(), %error, "cannot listen again yet");
        }
        self.driver.borrow_mut().slow_down(now, faults.slow_factor.get());
        *self.faults.borrow_mut() = ActiveFaults::new(faults, now);
        self.faults_changed.notify_waiters();
    }

    pub(crate) fn faults(&self) -> Ref<'_, ActiveFaults> {
        self.faults.borrow()
    }

    /// Woken by every change of the faults.
    pub(crate) fn faults_changed(&self) -> &Notify {
        &self.faults_changed
    }

    pub(crate) fn take_request_fault(&self) -> Option<RequestFault> {
        self.faults.borrow_mut().take_for_request()
    }

    /// An id that no other response of any emulator has.
    pub(crate) fn fresh_id(&self, prefix: &str) -> String {
        let number = self.ids_given.get() + 1;
        self.ids_given.set(number);
        format!("{prefix}{:016x}{number:016x}", self.identity)
    }

    /// Seconds since 1970, for `created` fields.
    pub(crate) fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    /// Checks as vLLM does that prompt and answer fit into the context; gives the prompt's length.
    fn checked_length(&self, prompt: &[Token], wish: Option<&LengthWish>) -> Result<u32, Failure> {
        let max_model_len = self.config.max_model_len;
        let prompt_tokens = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
        let requested = wish.map_or(0, |wish| wish.max_tokens.unwrap_or(1));
        if prompt_tokens.saturating_add(requested) > max_model_len {
            return Err(Failure::ContextTooLong { max_model_len, prompt_tokens, requested });
        }
        Ok(prompt_tokens)
    }

    fn submit(&self, mut chain: ChainBuilder, prompt_tokens: u32, answer: &Answer) -> Result<Ticket, Failure> {
        chain.push_tokens(answer.tokens());
        let request = |id| EngineRequest { id, chain: chain.build(), prompt_tokens, output_tokens: answer.len() };
        self.driver
            .borrow_mut()
            .submit(Instant::now(), answer.finish(), request)
            .map_err(|refused| Failure::Malformed(refused.to_string()))
    }
}
