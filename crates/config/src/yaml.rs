//! Reads YAML into types and reports every value that does not fit, not only the first, each with its place.

mod deserialize;
mod located;
mod misfit;
mod node;

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Error, NonFiniteFloatPolicy};

pub(crate) use located::Located;

use crate::problem::{Origin, Place, Problems};
use crate::suggest::closest;
use deserialize::NodeDeserializer;
use misfit::{Misfit, Step};
use node::{Entry, Kind, Node};

/// A file with more mistakes than this is not a configuration; the rest is not looked at.
const MOST_MISFITS: usize = 100;

/// Reads the text of the file at `path`. `None` when it is no YAML, or a value without default did not fit; whatever
/// was wrong is in `problems`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, text: &str, problems: &mut Problems) -> Option<T> {
    let at = |place| Origin::File { path: path.to_owned(), place };
    let mut root: Node = match serde_saphyr::from_str_with_options(text, options()) {
        Ok(root) => root,
        Err(error) => {
            problems.add(at(error.location().map(Place::of)), format!("not valid YAML: {}", message(&error)));
            return None;
        }
    };
    for _ in 0..MOST_MISFITS {
        let mut misfit = match T::deserialize(NodeDeserializer(&root)) {
            Ok(value) => return Some(value),
            Err(misfit) => misfit,
        };
        misfit.path.reverse();
        if !follows_from_earlier(&root, &misfit) {
            problems.add(at(Some(misfit.place.unwrap_or(root.place))), misfit.to_string());
        }
        if !take_out(&mut root, &misfit.path) {
            return None;
        }
    }
    problems.add(at(None), format!("more than {MOST_MISFITS} mistakes; the rest was not looked at"));
    None
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        // Repeated keys are found later, where the place of the first can be named.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // `off` is a word of this configuration, not a boolean.
        strict_booleans: true,
        // Each number has a range of its own, which refuses `.inf` in better words.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

/// The parser's message without the place, which stands before it already.
fn message(error: &Error) -> String {
    if let Error::MultipleDocuments { .. } = error.without_snippet() {
        return String::from("a second document begins here; allowed: one");
    }
    let text = error.to_string();
    let place = error.location().map(|location| format!(" at line {}, column {}", location.line(), location.column()));
    match place.and_then(|place| text.strip_suffix(&place)) {
        Some(text) => text.to_owned(),
        None => text,
    }
}

/// A value that was wrong, or whose key was mistyped, is not reported as missing as well.
fn follows_from_earlier(root: &Node, misfit: &Misfit) -> bool {
    let Some(missing) = misfit.missing else { return false };
    match find(root, &misfit.path).map(|node| &node.kind) {
        Some(Kind::Mapping(entries)) => {
            let meant = |entry: &Entry| closest(&entry.key, [missing].into_iter()).is_some();
            entries.iter().any(|entry| entry.value.omitted && meant(entry))
        }
        _ => false,
    }
}

fn find<'n>(root: &'n Node, path: &[Step]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, step| match &node.kind {
        Kind::Mapping(entries) => entries.get(step.index).map(|entry| &entry.value),
        Kind::List(items) => items.get(step.index),
        _ => None,
    })
}

/// Takes the node at the end of the path out of the tree; `false` for the root, without which nothing is left.
fn take_out(root: &mut Node, path: &[Step]) -> bool {
    let node = path.iter().try_fold(&mut *root, |node, step| match &mut node.kind {
        Kind::Mapping(entries) => entries.get_mut(step.index).map(|entry| &mut entry.value),
        Kind::List(items) => items.get_mut(step.index),
        _ => None,
    });
    match node {
        Some(node) if !path.is_empty() => {
            node.omitted = true;
            true
        }
        _ => false,
    }
}
