//! Whom a key belongs to, and what they may do.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::aws::AccountId;
use crate::name::Name;

/// Whom a key belongs to, by the name in the access log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(pub(super) Arc<str>);

impl KeyName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whom a key belongs to, and what they may do: the principal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    pub(super) name: KeyName,
    pub(super) tenant: Option<Arc<str>>,
    pub(super) endpoints: Option<Arc<[Name]>>,
    pub(super) account: Option<AccountId>,
    pub(super) expires: Option<SystemTime>,
}

impl KeyHolder {
    /// The name that it has in the keys file.
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// Whose prefixes are placed apart from everybody else's: the tenant, and where the key names none, its holder.
    pub fn tenant(&self) -> &str {
        self.tenant.as_deref().unwrap_or(self.name.as_str())
    }

    /// The account of AWS's that it acts for; `None` for the configured one.
    pub fn account(&self) -> Option<&AccountId> {
        self.account.as_ref()
    }

    /// Whether the key is over: what it proved before, it proves no longer.
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|end| end < now)
    }

    /// Whether it may call this endpoint. Names are compared without regard to case, as SageMaker tells endpoints apart.
    pub fn may_call(&self, endpoint: &str) -> bool {
        match &self.endpoints {
            None => true,
            Some(allowed) => allowed.iter().any(|name| name.as_str().eq_ignore_ascii_case(endpoint)),
        }
    }

    /// Whether it may call every endpoint, and so create, change and delete them, too.
    pub fn may_administer(&self) -> bool {
        self.endpoints.is_none()
    }
}
