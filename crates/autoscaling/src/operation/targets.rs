//! `RegisterScalableTarget`, `DescribeScalableTargets` and `DeregisterScalableTarget`.

use isotherm_cloudwatch::document::Document;
use isotherm_cloudwatch::input::{Input, Violations};

use super::{Call, LONG, about, answer, check, is_sagemaker, named, nothing, page, resource, tags};
use crate::error::Refusal;
use crate::record::{Suspended, Target};
use crate::resource::{Owner, Resource, ScalableResources};
use crate::service::{AutoScaling, random_id};

/// Refuses to register what is not there; what is not well named is left to the operation.
pub(crate) async fn check_existence(
    resources: &dyn ScalableResources,
    call: Call<'_>,
    input: &Document,
) -> Result<(), Refusal> {
    let text = |member| input.member(member).as_text().unwrap_or_default();
    let Some(resource) = Resource::named(text("ResourceId"), text("ScalableDimension")) else { return Ok(()) };
    match resources.capacity(&call.owner(), &resource).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            let message = format!("There is nothing to scale for {}: create it first.", named(&resource));
            Err(Refusal::validation(message))
        }
        Err(problem) => Err(Refusal::internal(problem)),
    }
}

/// Makes a resource scalable, or changes its bounds.
pub(crate) fn register_scalable_target(
    service: &AutoScaling,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let minimum = input.integer("MinCapacity", 0..=i32::MAX as u32);
    let maximum = input.integer("MaxCapacity", 0..=i32::MAX as u32);
    let role = input.text("RoleARN", 1..=LONG);
    let suspended = suspended(&input);
    let tags = tags::tags(&input)?;
    let resource = resource(&input, &violations)?;

    let mut book = service.book();
    let present = book.get(&(call.caller.account.clone(), resource.clone())).map(|entry| entry.target.clone());
    if present.is_some() && !tags.is_empty() {
        return Err(Refusal::validation("Tags can be given only to a new scalable target: use TagResource."));
    }
    let (Some(minimum), Some(maximum)) = (
        minimum.or(present.as_ref().map(|target| target.minimum)),
        maximum.or(present.as_ref().map(|target| target.maximum)),
    ) else {
        return Err(Refusal::validation("MinCapacity and MaxCapacity are required to register a new scalable target."));
    };
    if maximum < minimum {
        return Err(Refusal::validation("Maximum capacity cannot be less than minimum capacity"));
    }
    let target = present.unwrap_or_else(|| new_target(call.owner(), resource, call.now));
    let target = Target {
        minimum,
        maximum,
        role_arn: role.map_or(target.role_arn, str::to_owned),
        suspended: suspended.unwrap_or(target.suspended),
        tags: if tags.is_empty() { target.tags } else { tags },
        ..target
    };
    let arn = target.arn.clone();
    book.put_target(target)?;
    Ok(Document::structure([("ScalableTargetARN", arn.into())]))
}

/// The account's targets, or those that fit the request.
pub(crate) fn describe_scalable_targets(
    service: &AutoScaling,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let is_sagemaker = is_sagemaker(&input);
    let ids = input.texts("ResourceIds", 0..=50, 1..=LONG);
    let dimension = input.text("ScalableDimension", 1..=LONG);
    let page = page(&input)?;
    check(&violations)?;
    let fits = |target: &&Target| {
        is_sagemaker
            && (ids.is_empty() || ids.contains(&target.resource.to_string().as_str()))
            && dimension.is_none_or(|dimension| dimension == target.resource.dimension())
    };
    let book = service.book();
    let targets = book.after(&call.caller.account, None).map(|entry| &entry.target).filter(fits);
    Ok(answer("ScalableTargets", targets.map(document).collect(), page))
}

/// Ends the scaling of a resource, whose capacity stays as it is.
pub(crate) fn deregister_scalable_target(
    service: &AutoScaling,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let resource = resource(&input, &violations)?;
    let key = (call.caller.account.clone(), resource);
    match service.remove_target(&key)? {
        true => Ok(nothing()),
        false => Err(Refusal::not_found(format!("No scalable target found for {}", named(&key.1)))),
    }
}

fn new_target(owner: Owner, resource: Resource, now: u64) -> Target {
    let (region, account) = (&owner.region, &owner.account);
    // The role that AWS makes for the service; nobody looks at it here.
    let role_arn = format!(
        "arn:aws:iam::{account}:role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com/\
         AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
    );
    let arn = format!("arn:aws:application-autoscaling:{region}:{account}:scalable-target/{}", random_id());
    Target {
        arn,
        role_arn,
        owner,
        resource,
        minimum: 0,
        maximum: 0,
        suspended: Suspended::default(),
        tags: Default::default(),
        created: now,
        last_out: None,
        last_in: None,
    }
}

fn suspended(input: &Input<'_>) -> Option<Suspended> {
    let state = input.structure("SuspendedState")?;
    let is = |member| state.boolean(member).unwrap_or(false);
    Some(Suspended {
        scaling_in: is("DynamicScalingInSuspended"),
        scaling_out: is("DynamicScalingOutSuspended"),
        scheduled: is("ScheduledScalingSuspended"),
    })
}

fn document(target: &Target) -> Document {
    let suspended = Document::structure([
        ("DynamicScalingInSuspended", target.suspended.scaling_in.into()),
        ("DynamicScalingOutSuspended", target.suspended.scaling_out.into()),
        ("ScheduledScalingSuspended", target.suspended.scheduled.into()),
    ]);
    about(
        &target.resource,
        [
            ("MinCapacity", target.minimum.into()),
            ("MaxCapacity", target.maximum.into()),
            ("RoleARN", target.role_arn.as_str().into()),
            ("CreationTime", Document::timestamp(target.created)),
            ("SuspendedState", suspended),
            ("ScalableTargetARN", target.arn.as_str().into()),
        ],
    )
}
