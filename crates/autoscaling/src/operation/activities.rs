//! `DescribeScalingActivities`.

use isotherm_cloudwatch::document::Document;
use isotherm_cloudwatch::input::{Input, Violations};

use super::{Call, LONG, about, answer, check, is_sagemaker, page};
use crate::book::Entry;
use crate::error::Refusal;
use crate::record::Activity;
use crate::resource::Resource;
use crate::service::AutoScaling;

/// What was done to the account's targets, or to one, the newest first.
pub(crate) fn describe_scaling_activities(
    service: &AutoScaling,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let is_sagemaker = is_sagemaker(&input);
    let id = input.text("ResourceId", 1..=LONG);
    let dimension = input.text("ScalableDimension", 1..=LONG);
    let page = page(&input)?;
    check(&violations)?;
    let fits = |entry: &&Entry| {
        let resource = &entry.target.resource;
        is_sagemaker
            && id.is_none_or(|id| id == resource.to_string())
            && dimension.is_none_or(|dimension| dimension == resource.dimension())
    };
    let book = service.book();
    let entries = book.after(&call.caller.account, None).filter(fits);
    let mut found: Vec<(&Resource, &Activity)> =
        entries.flat_map(|entry| entry.activities.iter().map(|activity| (&entry.target.resource, activity))).collect();
    found.sort_by_key(|(_, activity)| std::cmp::Reverse(activity.start));
    let found = found.into_iter().map(|(resource, activity)| document(resource, activity)).collect();
    Ok(answer("ScalingActivities", found, page))
}

fn document(resource: &Resource, activity: &Activity) -> Document {
    about(
        resource,
        [
            ("ActivityId", activity.id.as_str().into()),
            ("Description", activity.description.as_str().into()),
            ("Cause", activity.cause.as_str().into()),
            ("StartTime", Document::timestamp(activity.start)),
            ("EndTime", activity.end.map_or(Document::Null, Document::timestamp)),
            ("StatusCode", activity.status.as_str().into()),
            ("StatusMessage", activity.message.as_deref().into()),
        ],
    )
}
