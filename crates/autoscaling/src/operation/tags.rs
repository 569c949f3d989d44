//! `TagResource`, `UntagResource` and `ListTagsForResource`, for scalable targets.

use isotherm_cloudwatch::document::Document;
use isotherm_cloudwatch::input::Input;
use isotherm_cloudwatch::tags::{MOST, TagChange, Tags, listed};

use super::{Call, LONG, nothing};
use crate::error::Refusal;
use crate::service::AutoScaling;

/// Adds tags to a target.
pub(crate) fn tag_resource(service: &AutoScaling, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    change(service, call, TagChange::adding(input, LONG, tags, Refusal::validation)?)
}

/// Takes tags off a target.
pub(crate) fn untag_resource(service: &AutoScaling, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    change(service, call, TagChange::removing(input, LONG).map_err(Refusal::validation)?)
}

/// A target's tags.
pub(crate) fn list_tags_for_resource(
    service: &AutoScaling,
    call: Call<'_>,
    input: &Document,
) -> Result<Document, Refusal> {
    let arn = listed(input, LONG).map_err(Refusal::validation)?;
    let book = service.book();
    let target = book.by_arn(&call.caller.account, &arn).ok_or_else(|| unknown(&arn))?;
    let tags = target.tags.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    Ok(Document::structure([("Tags", Document::Map(tags))]))
}

/// The tags in a request: a map of texts.
pub(super) fn tags(input: &Input<'_>) -> Result<Tags, Refusal> {
    let Document::Structure(members) = input.raw("Tags") else { return Ok(Tags::new()) };
    let mut tags = Tags::new();
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

fn change(service: &AutoScaling, call: Call<'_>, change: TagChange) -> Result<Document, Refusal> {
    let mut book = service.book();
    let target = book.by_arn(&call.caller.account, &change.arn).cloned();
    let mut target = target.ok_or_else(|| unknown(&change.arn))?;
    change.apply(&mut target.tags);
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
