//! Definitions of tools: told apart whatever their order and spelling.

use std::collections::HashMap;

use serde_json::Value;

use crate::chain::extend;
use crate::known::AlreadyHashed;

/// How many different spellings are remembered.
const MOST_SPELLINGS: usize = 4_096;

/// Remembers lists of tools.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// By the hash of a list as it is written.
    seen: HashMap<u64, Canonical, AlreadyHashed>,
    /// By the hash of the sorted list: the first order it came in, and whether others followed.
    orders: HashMap<u64, Orders, AlreadyHashed>,
}

/// A list of tools in the one order and spelling that all equal ones have.
#[derive(Clone, Debug)]
pub(crate) struct Canonical {
    pub(crate) text: std::sync::Arc<[u8]>,
    /// Of the sorted list.
    set: u64,
    /// Of the list in its own order, each tool spelled the same way.
    order: u64,
}

/// In what orders a set of tools came.
#[derive(Clone, Copy, Debug)]
struct Orders {
    first: u64,
    changed: bool,
}

impl Tools {
    /// The list in its canonical form.
    pub(crate) fn canonical(&mut self, written: &[u8]) -> Canonical {
        let hash = extend(0, written);
        if let Some(known) = self.seen.get(&hash) {
            return known.clone();
        }
        let canonical = Canonical::of(written);
        if self.seen.len() < MOST_SPELLINGS {
            self.seen.insert(hash, canonical.clone());
        }
        let orders = Orders { first: canonical.order, changed: false };
        if self.orders.len() < MOST_SPELLINGS {
            let known = self.orders.entry(canonical.set).or_insert(orders);
            known.changed |= known.first != canonical.order;
        }
        canonical
    }

    /// The same tools came in another order too.
    pub(crate) fn came_in_other_orders(&self, canonical: &Canonical) -> bool {
        self.orders.get(&canonical.set).is_some_and(|orders| orders.changed)
    }
}

impl Canonical {
    fn of(written: &[u8]) -> Canonical {
        let Ok(tools) = serde_json::from_slice::<Vec<Value>>(written) else {
            let hash = extend(0, written);
            return Canonical { text: written.into(), set: hash, order: hash };
        };
        let mut spelled: Vec<String> = tools.iter().map(canonical_json).collect();
        let order = extend(0, spelled.join("\n").as_bytes());
        spelled.sort_unstable();
        let text = spelled.join("\n");
        Canonical { set: extend(0, text.as_bytes()), order, text: text.into_bytes().into() }
    }
}

/// A value with its keys sorted and no white space.
pub(crate) fn canonical_json(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| key.as_str());
            let member = |(key, value): (&String, &Value)| format!("{key:?}:{}", canonical_json(value));
            format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
        }
        Value::Array(elements) => {
            format!("[{}]", elements.iter().map(canonical_json).collect::<Vec<_>>().join(","))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_spelling_do_not_matter_and_are_told_apart() {
        let mut tools = Tools::default();
        let first = tools.canonical(br#"[{"name":"a","x":1},{"name":"b"}]"#);
        let spelled = tools.canonical(br#"[ {"x": 1, "name": "a"}, {"name": "b"} ]"#);
        assert_eq!(first.text, spelled.text);
        assert!(!tools.came_in_other_orders(&first));
        let turned = tools.canonical(br#"[{"name":"b"},{"name":"a","x":1}]"#);
        assert_eq!(first.text, turned.text);
        assert!(tools.came_in_other_orders(&first));
        assert_ne!(tools.canonical(br#"[{"name":"c"}]"#).text, first.text);
    }
}
