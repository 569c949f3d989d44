//! Which provider an instance comes from.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use isotherm_config::{EmulatedProvider, Provider as Settings, ProviderRule};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{InstanceOrder, ProcessProvider, Provider, Standing, StaticProvider};

/// The providers of the configuration, in its order.
#[derive(Debug, Clone)]
pub struct Providers {
    rules: Arc<[(ProviderRule, Arc<dyn Provider>)]>,
    /// Who was given which order.
    owners: Arc<Mutex<HashMap<String, Arc<dyn Provider>>>>,
}

/// No rule fits what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "No provider delivers {instance_type} with {}: add an entry to aws.providers in Isotherm's configuration.",
    image.as_ref().map_or_else(|| "no image".to_owned(), |image| format!("image {image}"))
)]
pub struct NoProvider {
    instance_type: String,
    image: Option<String>,
}

impl Providers {
    /// The providers that these rules describe. What processes leave behind lies in `data_dir`; `emulated` makes what
    /// this crate can't: emulated engines.
    pub fn new(
        rules: &[ProviderRule],
        data_dir: &Path,
        emulated: impl Fn(&EmulatedProvider) -> Arc<dyn Provider>,
    ) -> Providers {
        let provider = |rule: &ProviderRule| -> Arc<dyn Provider> {
            match &rule.provider {
                Settings::Emulated(settings) => emulated(settings),
                Settings::Process(settings) => Arc::new(ProcessProvider::new(settings.clone(), data_dir)),
                Settings::Static(settings) => Arc::new(StaticProvider::new(settings.clone())),
            }
        };
        Providers { rules: rules.iter().map(|rule| (rule.clone(), provider(rule))).collect(), owners: Arc::default() }
    }

    /// One provider for everything.
    pub fn only(provider: Arc<dyn Provider>) -> Providers {
        let rule = ProviderRule::for_any(Settings::Emulated(EmulatedProvider::default()));
        Providers { rules: [(rule, provider)].into(), owners: Arc::default() }
    }

    /// The provider of an instance of this kind with this image.
    pub fn find(&self, instance_type: &str, image: Option<&str>) -> Result<&Arc<dyn Provider>, NoProvider> {
        let found = self.rules.iter().find(|(rule, _)| rule.fits(instance_type, image));
        found
            .map(|(_, provider)| provider)
            .ok_or_else(|| NoProvider { instance_type: instance_type.to_owned(), image: image.map(str::to_owned) })
    }

    /// Begins to start an instance at its provider; one without a provider has failed.
    pub fn start(&self, order: InstanceOrder) -> watch::Receiver<Standing> {
        match self.find(&order.instance_type, order.image.as_deref()) {
            Ok(provider) => {
                self.owners.lock().insert(order.key.clone(), Arc::clone(provider));
                provider.start(order)
            }
            Err(error) => watch::channel(Standing::Failed(error.to_string())).1,
        }
    }

    /// Ends an instance at the provider that was given the order. One that nobody was given in this life of the
    /// process may be left of an earlier one, at any of them: the configuration may have changed since.
    pub async fn stop(&self, key: &str) {
        let owner = self.owners.lock().remove(key);
        match owner {
            Some(provider) => provider.stop(key.to_owned()).await,
            None => {
                for (_, provider) in &*self.rules {
                    provider.stop(key.to_owned()).await;
                }
            }
        }
    }

    /// Ends what an earlier life of this process left running and nobody wants.
    pub async fn retain(&self, wanted: &HashSet<String>) {
        for (_, provider) in &*self.rules {
            provider.retain(wanted).await;
        }
    }

    /// Ends everything.
    pub async fn shutdown(&self) {
        for (_, provider) in &*self.rules {
            provider.shutdown().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_delivers_and_where_none_does_the_reason_says_what_to_do() {
        let fixed = |url: &str| {
            Settings::Static(isotherm_config::StaticProvider {
                urls: vec![url.parse().unwrap()],
                api_key: None,
                tls: None,
            })
        };
        let rules = [
            ProviderRule { image: Some("*vllm*".parse().unwrap()), ..ProviderRule::for_any(fixed("http://vllm")) },
            ProviderRule {
                instance_type: Some("ml.g5.*".parse().unwrap()),
                ..ProviderRule::for_any(fixed("http://g5"))
            },
        ];
        let providers = Providers::new(&rules, Path::new("/nowhere"), |_| unreachable!("no rule is emulated"));
        let found = |kind: &str, image: Option<&str>| format!("{:?}", providers.find(kind, image));
        assert!(found("ml.g5.xlarge", Some("a/vllm:1")).contains("vllm"));
        assert!(found("ml.g5.xlarge", None).contains("g5"));
        let error = providers.find("ml.p5.48xlarge", Some("tgi")).unwrap_err().to_string();
        let expected = "No provider delivers ml.p5.48xlarge with image tgi: add an entry to aws.providers in Isotherm's \
                        configuration.";
        assert_eq!(error, expected);
        let failed = providers.start(InstanceOrder { instance_type: "ml.p5.48xlarge".into(), ..Default::default() });
        assert!(matches!(&*failed.borrow(), Standing::Failed(reason) if reason.contains("with no image")));
    }
}
