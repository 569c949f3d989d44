//! `TagResource`, `UntagResource` and `ListTagsForResource`, for scalable targets.

use std::collections::BTreeMap;

use isotherm_cloudwatch::document::Document;
use isotherm_cloudwatch::input::{Input, Violations};

use super::{Call, LONG, check, nothing};
use crate::error::Refusal;
use crate::record::Target;
use crate::service::AutoScaling;

/// The most tags of a target, as AWS has it.
const MOST: usize = 50;

/// Adds tags to a target.
pub(crate) fn tag_resource(service: &AutoScaling, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    change(service, call, input, "Tags", |target, input| {
        target.tags.extend(tags(input)?);
        Ok(())
    })
}

/// Takes tags off a target.
pub(crate) fn untag_resource(service: &AutoScaling, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    change(service, call, input, "TagKeys", |target, input| {
        for key in input.texts("TagKeys", 0..=200, 1..=128) {
            target.tags.remove(key);
        }
        Ok(())
    })
}

/// A target's tags.
pub(crate) fn list_tags_for_resource(
    service: &AutoScaling,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let arn = input.required_text("ResourceARN", 1..=LONG);
    check(&violations)?;
    let book = service.book();
    let target = book.by_arn(&call.caller.account, arn).ok_or_else(|| unknown(arn))?;
    let tags = target.tags.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    Ok(Document::structure([("Tags", Document::Map(tags))]))
}

/// The tags in a request: a map of texts.
pub(super) fn tags(input: &Input<'_>) -> Result<BTreeMap<String, String>, Refusal> {
    let Document::Structure(members) = input.raw("Tags") else { return Ok(BTreeMap::new()) };
    let mut tags = BTreeMap::new();
    for (key, value) in members {
        let value = value.as_text().filter(|value| value.chars().count() <= 256);
        let Some(value) = value.filter(|_| (1..=128).contains(&key.chars().count())) else {
            let message = format!("The tag {key:.128?} is not valid: keys have 1 to 128 characters, values up to 256.");
            return Err(Refusal::validation(message));
        };
        tags.insert(key.to_string(), value.to_owned());
    }
    if tags.len() > MOST {
        return Err(Refusal::validation(format!("A scalable target has at most {MOST} tags.")));
    }
    Ok(tags)
}

fn change(
    service: &AutoScaling,
    call: Call<'_>,
    input: &Document,
    member: &str,
    change: impl FnOnce(&mut Target, &Input<'_>) -> Result<(), Refusal>,
) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let arn = input.required_text("ResourceARN", 1..=LONG);
    input.require(member);
    check(&violations)?;
    let mut book = service.book();
    let mut target = book.by_arn(&call.caller.account, arn).cloned().ok_or_else(|| unknown(arn))?;
    change(&mut target, &input)?;
    check(&violations)?;
    if target.tags.len() > MOST {
        let message = format!("A scalable target has at most {MOST} tags.");
        return Err(Refusal { shape: "TooManyTagsException", message });
    }
    book.put_target(target)?;
    Ok(nothing())
}

fn unknown(arn: &str) -> Refusal {
    Refusal::no_resource(format!("No scalable target has the ARN {arn:.200}."))
}
