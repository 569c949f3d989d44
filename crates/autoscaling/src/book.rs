//! Targets, policies and activities: in memory, and in the store so that they outlive the process.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use isotherm_store::{Records, Store, StoreError, Table, Transaction};

use crate::error::Refusal;
use crate::record::{Activity, Change, Policy, Target};
use crate::resource::Resource;

const TARGETS: Table<Target> = Table::named("scalable_targets");
const POLICIES: Table<Policy> = Table::named("scaling_policies");
const ACTIVITIES: Table<VecDeque<Activity>> = Table::named("scaling_activities");

/// The most targets of an account.
const MOST_TARGETS: usize = 1_000;

/// The most policies of a target, as Application Auto Scaling has it.
const MOST_POLICIES: usize = 50;

/// How many activities of a target are kept: the last ones.
const ACTIVITIES_KEPT: usize = 100;

/// The account, and the resource.
pub(crate) type Key = (String, Resource);

/// Everything that is known of scaling.
#[derive(Debug)]
pub(crate) struct Book {
    targets: BTreeMap<Key, Entry>,
    store: Option<Arc<Store>>,
}

/// A target, its policies by name, and its last activities, the newest first.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) target: Target,
    pub(crate) policies: BTreeMap<String, Policy>,
    pub(crate) activities: VecDeque<Activity>,
}

impl Book {
    /// What the store has; nothing, and nothing kept, without a store.
    pub(crate) fn open(store: Option<Arc<Store>>) -> Result<Book, StoreError> {
        let mut targets = BTreeMap::new();
        if let Some(store) = &store {
            store.read(|snapshot| {
                for (stored, target) in snapshot.scan(&TARGETS, "")? {
                    let policies = snapshot.scan(&POLICIES, &format!("{stored}/"))?;
                    let policies = policies.into_iter().map(|(_, policy)| (policy.name.clone(), policy)).collect();
                    let activities = snapshot.get(&ACTIVITIES, &stored)?.unwrap_or_default();
                    targets.insert(target.key(), Entry { target, policies, activities });
                }
                Ok::<(), StoreError>(())
            })?;
        }
        Ok(Book { targets, store })
    }

    /// A target.
    pub(crate) fn get(&self, key: &Key) -> Option<&Entry> {
        self.targets.get(key)
    }

    /// An account's targets in order, from after `after` on.
    pub(crate) fn after(&self, account: &str, after: Option<Resource>) -> impl Iterator<Item = &Entry> {
        let begin = match after {
            Some(resource) => Bound::Excluded((account.to_owned(), resource)),
            None => Bound::Included((account.to_owned(), Resource::first())),
        };
        let rest = self.targets.range((begin, Bound::Unbounded));
        rest.take_while(move |(key, _)| key.0 == account).map(|(_, entry)| entry)
    }

    /// Every target's key.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.targets.keys().cloned().collect()
    }

    /// The target of this ARN, of an account.
    pub(crate) fn by_arn(&self, account: &str, arn: &str) -> Option<&Target> {
        self.after(account, None).map(|entry| &entry.target).find(|target| target.arn == arn)
    }

    /// Keeps a target, in place of the one of its resource, whose policies and activities stay.
    pub(crate) fn put_target(&mut self, target: Target) -> Result<(), Refusal> {
        let key = target.key();
        if !self.targets.contains_key(&key) && self.after(&target.owner.account, None).count() >= MOST_TARGETS {
            let message = format!("There are {MOST_TARGETS} scalable targets already, which is the most.");
            return Err(Refusal::limit(message));
        }
        self.keep(|transaction| transaction.put(&TARGETS, &stored_key(&key), &target))?;
        match self.targets.get_mut(&key) {
            Some(entry) => entry.target = target,
            None => {
                let entry = Entry { target, policies: BTreeMap::new(), activities: VecDeque::new() };
                self.targets.insert(key, entry);
            }
        }
        Ok(())
    }

    /// Takes a target away, with its policies and activities; `None` when there is none.
    pub(crate) fn remove_target(&mut self, key: &Key) -> Result<Option<Entry>, Refusal> {
        let Some(entry) = self.targets.get(key) else { return Ok(None) };
        let stored = stored_key(key);
        self.keep(|transaction| {
            for name in entry.policies.keys() {
                transaction.remove(&POLICIES, &format!("{stored}/{name}"))?;
            }
            transaction.remove(&ACTIVITIES, &stored)?;
            transaction.remove(&TARGETS, &stored)
        })?;
        Ok(self.targets.remove(key))
    }

    /// Refuses a further policy where a target has as many as it may have.
    pub(crate) fn refuse_one_more(&self, policy: &Policy) -> Result<(), Refusal> {
        let entry = self.targets.get(&policy.key());
        if entry
            .is_some_and(|entry| !entry.policies.contains_key(&policy.name) && entry.policies.len() >= MOST_POLICIES)
        {
            let message = format!("The target has {MOST_POLICIES} scaling policies already, which is the most.");
            return Err(Refusal::limit(message));
        }
        Ok(())
    }

    /// Keeps a policy of a target that there is, in place of the one of its name.
    pub(crate) fn put_policy(&mut self, policy: Policy) -> Result<(), Refusal> {
        let key = policy.key();
        let stored = format!("{}/{}", stored_key(&key), policy.name);
        self.keep(|transaction| transaction.put(&POLICIES, &stored, &policy))?;
        if let Some(entry) = self.targets.get_mut(&key) {
            entry.policies.insert(policy.name.clone(), policy);
        }
        Ok(())
    }

    /// Takes a policy away; `None` when there is none of that name.
    pub(crate) fn remove_policy(&mut self, key: &Key, name: &str) -> Result<Option<Policy>, Refusal> {
        if self.get(key).is_none_or(|entry| !entry.policies.contains_key(name)) {
            return Ok(None);
        }
        let stored = format!("{}/{name}", stored_key(key));
        self.keep(|transaction| transaction.remove(&POLICIES, &stored))?;
        Ok(self.targets.get_mut(key).and_then(|entry| entry.policies.remove(name)))
    }

    /// Notes a change of a target, and when it was.
    pub(crate) fn note(&mut self, key: &Key, activity: Activity, change: Option<Change>) -> Result<(), Refusal> {
        let Some(present) = self.targets.get(key) else { return Ok(()) };
        let mut entry = present.clone();
        match change {
            Some(out) if out.to > out.from => entry.target.last_out = Some(out),
            Some(change) => entry.target.last_in = Some(change),
            None => {}
        }
        entry.activities.push_front(activity);
        entry.activities.truncate(ACTIVITIES_KEPT);
        self.replace(key, entry)
    }

    /// Changes what is known of a target's activities.
    pub(crate) fn amend(&mut self, key: &Key, amend: impl FnOnce(&mut VecDeque<Activity>)) -> Result<(), Refusal> {
        let Some(present) = self.targets.get(key) else { return Ok(()) };
        let mut entry = present.clone();
        amend(&mut entry.activities);
        if entry.activities == present.activities {
            return Ok(());
        }
        self.replace(key, entry)
    }

    fn replace(&mut self, key: &Key, entry: Entry) -> Result<(), Refusal> {
        let stored = stored_key(key);
        self.keep(|transaction| {
            transaction.put(&TARGETS, &stored, &entry.target)?;
            transaction.put(&ACTIVITIES, &stored, &entry.activities)
        })?;
        self.targets.insert(key.clone(), entry);
        Ok(())
    }

    fn keep<T>(&self, change: impl FnOnce(&Transaction) -> Result<T, StoreError>) -> Result<(), StoreError> {
        match &self.store {
            Some(store) => store.write(change).map(drop),
            None => Ok(()),
        }
    }
}

impl Target {
    pub(crate) fn key(&self) -> Key {
        (self.owner.account.clone(), self.resource.clone())
    }
}

impl Policy {
    fn key(&self) -> Key {
        (self.owner.account.clone(), self.resource.clone())
    }
}

/// Names hold no slash, so the key is that of one resource only.
fn stored_key((account, resource): &Key) -> String {
    format!("{account}/{resource}")
}
