//! Where each model is served: what all instances list, merged, for each account by itself.

use std::collections::HashMap;
use std::sync::Arc;

use isotherm_core::ModelHash;

use crate::Endpoint;

/// Which endpoint of which account lists which model, at one moment.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    by_account: HashMap<Box<str>, Listed>,
}

/// What one account's endpoints list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Its first endpoint, by its index.
    default: usize,
    /// The first endpoint that lists a model, by its index.
    by: HashMap<ModelHash, usize>,
    /// The first endpoint that may serve a model that nobody lists: an instance of it does not say what it serves, or
    /// it has no instance yet.
    unsaid: Option<usize>,
}

impl Directory {
    /// Merges what the instances of these endpoints list.
    pub(crate) fn of(endpoints: &[Arc<Endpoint>]) -> Directory {
        let mut directory = Directory::default();
        for (index, endpoint) in endpoints.iter().enumerate() {
            let account = endpoint.account().unwrap_or_default().into();
            let nothing = || Listed { default: index, by: HashMap::new(), unsaid: None };
            let listed = directory.by_account.entry(account).or_insert_with(nothing);
            // Who wants a component says so by its name.
            if !endpoint.has_components() {
                listed.add(index, endpoint);
            }
        }
        directory
    }

    /// What an account's endpoints list; `None` where it has none.
    pub(crate) fn of_account(&self, account: Option<&str>) -> Option<&Listed> {
        self.by_account.get(account.unwrap_or_default())
    }
}

impl Listed {
    fn add(&mut self, index: usize, endpoint: &Endpoint) {
        let listings: Vec<_> = endpoint.variants().iter().flat_map(|share| share.variant.listings()).collect();
        let says_all = !listings.is_empty() && listings.iter().all(Option::is_some);
        if !says_all {
            self.unsaid.get_or_insert(index);
        }
        for model in listings.iter().flatten().flat_map(|listing| listing.models()) {
            self.by.entry(ModelHash::of(model.id())).or_insert(index);
        }
    }

    /// The index of the endpoint that a request goes to, which may name a model; `None` when that is served nowhere.
    pub(crate) fn endpoint_of(&self, model: Option<ModelHash>) -> Option<usize> {
        match model {
            Some(model) => self.by.get(&model).copied().or(self.unsaid),
            None => Some(self.default),
        }
    }
}
