//! The operations, and how they read what several of them have in common.

mod activities;
mod alarms;
mod policies;
mod put_policy;
mod tags;
mod targets;

use isotherm_cloudwatch::document::Document;
use isotherm_cloudwatch::input::{Input, Violations};
use isotherm_wire::aws::Caller;

pub(crate) use self::activities::describe_scaling_activities;
pub(crate) use self::alarms::forget;
pub(crate) use self::policies::{delete_scaling_policy, describe_scaling_policies};
pub(crate) use self::put_policy::put_scaling_policy;
pub(crate) use self::tags::{list_tags_for_resource, tag_resource, untag_resource};
pub(crate) use self::targets::{
    check_existence, deregister_scalable_target, describe_scalable_targets, register_scalable_target,
};
use crate::error::Refusal;
use crate::resource::{NAMESPACE, Owner, Resource};

/// Who asks, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) caller: &'c Caller,
    /// Seconds of Unix time.
    pub(crate) now: u64,
}

impl Call<'_> {
    fn owner(&self) -> Owner {
        Owner { account: self.caller.account.clone(), region: self.caller.region.clone() }
    }
}

/// Every service namespace of the model; here only SageMaker's has resources.
const NAMESPACES: [&str; 15] = [
    "ecs",
    "elasticmapreduce",
    "ec2",
    "appstream",
    "dynamodb",
    "rds",
    "sagemaker",
    "custom-resource",
    "comprehend",
    "lambda",
    "cassandra",
    "kafka",
    "elasticache",
    "neptune",
    "workspaces",
];

/// The longest ids and names.
const LONG: usize = 1600;

/// The namespace, which must be there; whether it is SageMaker's.
fn is_sagemaker(input: &Input<'_>) -> bool {
    input.require("ServiceNamespace");
    let known = |word: &str| NAMESPACES.contains(&word).then(|| word == NAMESPACE);
    input.word("ServiceNamespace", &NAMESPACES, known).unwrap_or(false)
}

/// The resource that a request is about.
///
/// # Errors
///
/// The violations so far, and whether namespace, id and dimension don't go together.
fn resource(input: &Input<'_>, violations: &Violations) -> Result<Resource, Refusal> {
    let is_sagemaker = is_sagemaker(input);
    let id = input.required_text("ResourceId", 1..=LONG);
    let dimension = input.required_text("ScalableDimension", 1..=LONG);
    check(violations)?;
    let resource = Resource::named(id, dimension).filter(|_| is_sagemaker);
    resource.ok_or_else(|| {
        Refusal::validation(
            "Unsupported service namespace, resource type or scalable dimension: there are endpoint/NAME/variant/NAME \
             with sagemaker:variant:DesiredInstanceCount and inference-component/NAME with \
             sagemaker:inference-component:DesiredCopyCount, both in the namespace sagemaker.",
        )
    })
}

/// A resource as errors name it.
fn named(resource: &Resource) -> String {
    format!("service namespace: {NAMESPACE}, resource ID: {resource}, scalable dimension: {}", resource.dimension())
}

/// The members that name a resource in an answer.
fn resource_members(resource: &Resource) -> [(&'static str, Document); 3] {
    [
        ("ServiceNamespace", NAMESPACE.into()),
        ("ResourceId", resource.to_string().into()),
        ("ScalableDimension", resource.dimension().into()),
    ]
}

/// A structure of a resource's members and these.
fn about<const N: usize>(resource: &Resource, members: [(&'static str, Document); N]) -> Document {
    let mut document = Document::structure(resource_members(resource));
    if let (Document::Structure(all), Document::Structure(more)) = (&mut document, Document::structure(members)) {
        all.extend(more);
    }
    document
}

/// Refuses a request that violates the model's constraints.
fn check(violations: &Violations) -> Result<(), Refusal> {
    violations.check().map_err(Refusal::validation)
}

/// How many results are wanted, and how many were told before.
fn page(input: &Input<'_>) -> Result<(usize, usize), Refusal> {
    let most = input.integer("MaxResults", 1..=50).unwrap_or(50) as usize;
    let told = match input.text("NextToken", 0..=LONG) {
        Some(token) => token.strip_prefix('n').and_then(|told| told.parse().ok()).ok_or_else(Refusal::next_token)?,
        None => 0,
    };
    Ok((most, told))
}

/// One page of what was found, under this name.
fn answer(member: &'static str, found: Vec<Document>, (most, told): (usize, usize)) -> Document {
    let next = (found.len() > told.saturating_add(most)).then(|| format!("n{}", told + most));
    let page = found.into_iter().skip(told).take(most).collect();
    Document::structure([(member, Document::List(page)), ("NextToken", next.into())])
}

/// An answer without content.
fn nothing() -> Document {
    Document::Structure(Vec::new())
}
