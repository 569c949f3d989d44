//! Where each model is served: what all instances list, merged.

use std::collections::HashMap;
use std::sync::Arc;

use isotherm_core::ModelHash;

use crate::Endpoint;

/// Which endpoint lists which model, at one moment.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// The first endpoint that lists a model, by its index.
    listed_by: HashMap<ModelHash, usize>,
    /// The first endpoint that may serve a model that nobody lists: an instance of it does not say what it serves, or
    /// it has no instance yet.
    unsaid: Option<usize>,
}

impl Directory {
    /// Merges what the instances of these endpoints list.
    pub(crate) fn of(endpoints: &[Arc<Endpoint>]) -> Directory {
        let mut directory = Directory::default();
        // Who wants a component says so by its name.
        let by_model = endpoints.iter().enumerate().filter(|(_, endpoint)| !endpoint.has_components());
        for (index, endpoint) in by_model {
            let listings: Vec<_> = endpoint.variants().iter().flat_map(|share| share.variant.listings()).collect();
            let says_all = !listings.is_empty() && listings.iter().all(Option::is_some);
            if !says_all {
                directory.unsaid.get_or_insert(index);
            }
            for model in listings.iter().flatten().flat_map(|listing| listing.models()) {
                directory.listed_by.entry(ModelHash::of(model.id())).or_insert(index);
            }
        }
        directory
    }

    /// The index of the endpoint that a request for the model goes to; `None` when it is served nowhere.
    pub(crate) fn endpoint_of(&self, model: ModelHash) -> Option<usize> {
        self.listed_by.get(&model).copied().or(self.unsaid)
    }
}
