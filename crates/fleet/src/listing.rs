//! What an instance says that it serves: its `/v1/models`, kept as it came.

use std::sync::Arc;

use isotherm_core::Models;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The models that one instance lists.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    models: Vec<Arc<Model>>,
}

/// A model that an instance lists.
#[derive(Debug)]
pub struct Model {
    id: Arc<str>,
    object: Box<RawValue>,
}

impl Model {
    /// Its name in requests.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The JSON object that describes it, as the engine wrote it.
    pub fn object(&self) -> &str {
        self.object.get()
    }
}

/// An answer that is no listing.
#[derive(Debug, thiserror::Error)]
#[error("the answer is no list of models ({0}); expected {{\"data\": [{{\"id\": …}}, …]}}")]
pub(crate) struct MalformedListing(#[from] serde_json::Error);

impl Listing {
    /// Reads the body of an answer to `GET /v1/models`.
    ///
    /// An empty list says nothing: engines that load models on demand list none, and missing data must not stop
    /// traffic.
    pub(crate) fn parse(body: &[u8]) -> Result<Option<Listing>, MalformedListing> {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            data: Vec<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Named {
            id: Arc<str>,
        }
        let answer: Answer<'_> = serde_json::from_slice(body)?;
        let model = |object: &&RawValue| {
            let Named { id } = serde_json::from_str(object.get())?;
            Ok(Arc::new(Model { id, object: (*object).to_owned() }))
        };
        let models: Vec<_> = answer.data.iter().map(model).collect::<Result<_, serde_json::Error>>()?;
        Ok((!models.is_empty()).then_some(Listing { models }))
    }

    pub(crate) fn models(&self) -> &[Arc<Model>] {
        &self.models
    }

    /// The names alone, as routing compares them.
    pub(crate) fn names(&self) -> Models {
        Models::listed(self.models.iter().map(|model| &*model.id))
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn objects_are_kept_as_they_came() {
        let body = r#"{"object":"list","data":[{"id":"llama", "max_model_len":  8192,"x":{"y":1}},
            {"id":"lora","parent":"llama"}]}"#;
        let listing = Listing::parse(body.as_bytes()).unwrap().unwrap();
        let objects: Vec<_> = listing.models().iter().map(|model| (model.id(), model.object())).collect();
        let expected = [
            ("llama", r#"{"id":"llama", "max_model_len":  8192,"x":{"y":1}}"#),
            ("lora", r#"{"id":"lora","parent":"llama"}"#),
        ];
        assert_eq!(objects, expected);
    }

    #[test]
    fn an_empty_list_says_nothing_and_anything_else_is_malformed() {
        assert!(Listing::parse(br#"{"data":[]}"#).unwrap().is_none());
        for body in ["", "[]", "{}", r#"{"data":{}}"#, r#"{"data":[{}]}"#, r#"{"data":[{"id":7}]}"#, "<html>", "\u{1}"]
        {
            let error = Listing::parse(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("no list of models"), "{body}: {error}");
        }
    }
}
