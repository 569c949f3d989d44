//! `aws`: the account, the region, the directory and the instance providers of SageMaker's control plane.

mod account;
mod glob;
mod providers;
mod quotas;

use std::num::NonZeroU32;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

pub use self::account::{AccountId, AccountIdError, Region, RegionError};
pub use self::glob::{Glob, GlobError};
use self::providers::ProviderElement;
pub use self::providers::{EmulatedProvider, ProcessProvider, Provider, ProviderRule, StaticProvider};
pub use self::quotas::Quotas;
use crate::context::Context;
use crate::value::{in_range, whole};
use crate::yaml::Located;

/// SageMaker's control plane, and what else of AWS's APIs goes with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Aws {
    /// The account of callers whose key names none.
    pub account_id: AccountId,
    /// The region of requests that are not signed for one; it stands in ARNs.
    pub region: Region,
    /// The regions that clients may sign for; any when empty.
    pub regions: Vec<Region>,
    /// Where the control plane keeps its state.
    pub data_dir: PathBuf,
    /// Where inputs and answers of asynchronous invocations lie: `s3://BUCKET/KEY` is `BUCKET/KEY` in it.
    pub async_dir: PathBuf,
    /// What an instance is: the first rule that fits decides. Where none fits, no instance can be had.
    pub providers: Vec<ProviderRule>,
    /// How much of each kind of resource an account may have.
    pub quotas: Quotas,
    /// How many times faster than on AWS scaling makes up its mind, for trying it out.
    pub scaling_speed: NonZeroU32,
}

/// How fast scaling is when nothing is said.
const AS_ON_AWS: NonZeroU32 = NonZeroU32::MIN;

/// Where inputs and answers of asynchronous invocations lie when nothing is said, within the data directory.
const ASYNC_DIR: &str = "s3";

impl Aws {
    /// The settings when nothing is said, with the state in `data_dir` and no provider.
    pub fn in_directory(data_dir: PathBuf) -> Aws {
        Aws {
            account_id: AccountId::default(),
            region: Region::default(),
            regions: Vec::new(),
            async_dir: data_dir.join(ASYNC_DIR),
            data_dir,
            providers: Vec::new(),
            quotas: Quotas::default(),
            scaling_speed: AS_ON_AWS,
        }
    }
}

/// SageMaker's control plane, and what else of AWS's APIs goes with it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Aws")]
pub(crate) struct AwsElement {
    /// The account that resources belong to where a caller's key names none: twelve digits, in quotes; "123456789012"
    /// when absent.
    #[serde(default)]
    account_id: AccountId,
    /// The region of requests that are not signed for one; us-east-1 when absent. It stands in ARNs.
    #[serde(default)]
    region: Region,
    /// The regions that clients may sign for; any when absent.
    #[serde(default)]
    regions: Vec<Region>,
    /// The directory in which endpoints, models and everything else that was created is kept, made where it is
    /// missing; relative to the directory of this file.
    #[schemars(with = "String")]
    data_dir: PathBuf,
    /// The directory in which the inputs and answers of asynchronous invocations lie, relative to the directory of this
    /// file: s3://BUCKET/KEY is the file BUCKET/KEY in it, and nothing outside of it is read or written. `s3` within
    /// data_dir when absent.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    async_dir: Option<PathBuf>,
    /// What an instance of an endpoint is, by its type or its container's image: the first entry that fits decides.
    #[serde(default)]
    providers: Vec<Located<ProviderElement>>,
    /// How much of each kind of resource an account may have.
    #[serde(default)]
    quotas: Quotas,
    /// How many times faster than on AWS scaling makes up its mind: the 15 minutes of target tracking and the minutes of
    /// ManagedInstanceScaling pass so much faster. For trying it out; 1 when absent.
    #[serde(default = "as_on_aws", deserialize_with = "scaling_speed")]
    #[schemars(range(min = 1, max = 1_000))]
    scaling_speed: NonZeroU32,
}

fn as_on_aws() -> NonZeroU32 {
    AS_ON_AWS
}

fn scaling_speed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroU32, D::Error> {
    let times: u32 = whole(deserializer, |given| in_range(given, 1, 1_000))?;
    Ok(NonZeroU32::new(times).unwrap_or(AS_ON_AWS))
}

/// The section, when its parts fit together; what does not is noted as problems.
pub(crate) fn aws(element: AwsElement, context: &mut Context<'_>) -> Aws {
    let AwsElement { account_id, region, regions, data_dir, async_dir, providers, quotas, scaling_speed } = element;
    let data_dir = context.directory().join(data_dir);
    let async_dir = async_dir.map_or_else(|| data_dir.join(ASYNC_DIR), |path| context.directory().join(path));
    let providers = providers.into_iter().filter_map(|provider| providers::rule(provider, context)).collect();
    Aws { account_id, region, regions, data_dir, async_dir, providers, quotas, scaling_speed }
}
