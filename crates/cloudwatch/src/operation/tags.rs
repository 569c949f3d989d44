//! `TagResource`, `UntagResource` and `ListTagsForResource`, for alarms.

use std::collections::BTreeMap;

use super::{Call, check};
use crate::alarm::Alarm;
use crate::document::Document;
use crate::input::{Input, Violations};
use crate::{CloudWatch, Refusal};

/// The most tags of an alarm, as AWS has it.
const MOST: usize = 50;

/// The longest ARN.
const LONG: usize = 1024;

/// Adds tags to an alarm.
pub(crate) fn tag_resource(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    change(cloudwatch, call, input, "Tags", |alarm, input| {
        alarm.tags.extend(tags(input)?);
        Ok(())
    })
}

/// Takes tags off an alarm.
pub(crate) fn untag_resource(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    change(cloudwatch, call, input, "TagKeys", |alarm, input| {
        for key in input.texts("TagKeys", 0..=200, 1..=128) {
            alarm.tags.remove(key);
        }
        Ok(())
    })
}

/// An alarm's tags.
pub(crate) fn list_tags_for_resource(
    cloudwatch: &CloudWatch,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let arn = input.required_text("ResourceARN", 1..=LONG);
    check(&violations)?;
    let alarms = cloudwatch.alarms();
    let alarm = alarms.by_arn(&call.caller.account, arn).ok_or_else(|| unknown(arn))?;
    let tag = |(key, value): (&String, &String)| {
        Document::structure([("Key", key.as_str().into()), ("Value", value.as_str().into())])
    };
    Ok(Document::structure([("Tags", Document::List(alarm.tags.iter().map(tag).collect()))]))
}

/// The tags in a request.
pub(super) fn tags(input: &Input<'_>) -> Result<BTreeMap<String, String>, Refusal> {
    let tags = input.structures("Tags", 0..=usize::MAX);
    let tag = |tag: &Input<'_>| {
        (tag.required_text("Key", 1..=128).to_owned(), tag.required_text("Value", 0..=256).to_owned())
    };
    let tags: BTreeMap<String, String> = tags.iter().map(tag).collect();
    refuse_too_many(&tags)?;
    Ok(tags)
}

fn change(
    cloudwatch: &CloudWatch,
    call: Call<'_>,
    input: &Document,
    member: &str,
    change: impl FnOnce(&mut Alarm, &Input<'_>) -> Result<(), Refusal>,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let arn = input.required_text("ResourceARN", 1..=LONG);
    input.require(member);
    check(&violations)?;
    let mut alarms = cloudwatch.alarms();
    let mut alarm = alarms.by_arn(&call.caller.account, arn).cloned().ok_or_else(|| unknown(arn))?;
    change(&mut alarm, &input)?;
    check(&violations)?;
    refuse_too_many(&alarm.tags)?;
    alarms.put(&call.caller.account, alarm)?;
    Ok(Document::structure([]))
}

fn refuse_too_many(tags: &BTreeMap<String, String>) -> Result<(), Refusal> {
    if tags.len() > MOST {
        return Err(Refusal::value(format!("An alarm has at most {MOST} tags.")));
    }
    Ok(())
}

fn unknown(arn: &str) -> Refusal {
    let message = format!("No alarm has the ARN {arn:.200}; here only alarms have tags.");
    Refusal { shape: "ResourceNotFoundException", code: "ResourceNotFoundException", status: 404, message }
}
