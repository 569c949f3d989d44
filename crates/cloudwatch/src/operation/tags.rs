//! `TagResource`, `UntagResource` and `ListTagsForResource`, for alarms.

use super::Call;
use crate::document::Document;
use crate::input::Input;
use crate::tags::{MOST, TagChange, Tags, listed};
use crate::{CloudWatch, Refusal};

/// The longest ARN.
const LONG: usize = 1024;

/// Adds tags to an alarm.
pub(crate) fn tag_resource(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    change(cloudwatch, call, TagChange::adding(input, LONG, tags, Refusal::validation)?)
}

/// Takes tags off an alarm.
pub(crate) fn untag_resource(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    change(cloudwatch, call, TagChange::removing(input, LONG).map_err(Refusal::validation)?)
}

/// An alarm's tags.
pub(crate) fn list_tags_for_resource(
    cloudwatch: &CloudWatch,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let arn = listed(input, LONG).map_err(Refusal::validation)?;
    let alarms = cloudwatch.alarms();
    let alarm = alarms.by_arn(&call.caller.account, &arn).ok_or_else(|| unknown(&arn))?;
    let tag = |(key, value): (&String, &String)| {
        Document::structure([("Key", key.as_str().into()), ("Value", value.as_str().into())])
    };
    Ok(Document::structure([("Tags", Document::List(alarm.tags.iter().map(tag).collect()))]))
}

/// The tags in a request: a list of pairs.
pub(super) fn tags(input: &Input<'_>) -> Result<Tags, Refusal> {
    let tags = input.structures("Tags", 0..=usize::MAX);
    let tag = |tag: &Input<'_>| {
        (tag.required_text("Key", 1..=128).to_owned(), tag.required_text("Value", 0..=256).to_owned())
    };
    let tags: Tags = tags.iter().map(tag).collect();
    refuse_too_many(&tags)?;
    Ok(tags)
}

fn change(cloudwatch: &CloudWatch, call: Call<'_>, change: TagChange) -> Result<Document, Refusal> {
    let mut alarms = cloudwatch.alarms();
    let alarm = alarms.by_arn(&call.caller.account, &change.arn).cloned();
    let mut alarm = alarm.ok_or_else(|| unknown(&change.arn))?;
    change.apply(&mut alarm.tags);
    refuse_too_many(&alarm.tags)?;
    alarms.put(&call.caller.account, alarm)?;
    Ok(Document::structure([]))
}

fn refuse_too_many(tags: &Tags) -> Result<(), Refusal> {
    if tags.len() > MOST {
        return Err(Refusal::value(format!("An alarm has at most {MOST} tags.")));
    }
    Ok(())
}

fn unknown(arn: &str) -> Refusal {
    let message = format!("No alarm has the ARN {arn:.200}; here only alarms have tags.");
    Refusal { shape: "ResourceNotFoundException", code: "ResourceNotFoundException", status: 404, message }
}
