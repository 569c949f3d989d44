//! Tags of what has an ARN: CloudWatch's alarms and Auto Scaling's targets are tagged by the same operations, and differ in
//! how a request and an answer write tags down.

use std::collections::BTreeMap;

use crate::document::Document;
use crate::input::{Input, Violations};

/// The most tags of a resource, as AWS has it.
pub const MOST: usize = 50;

/// Tags by their keys.
pub type Tags = BTreeMap<String, String>;

/// What `TagResource` or `UntagResource` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagChange {
    /// Whose tags.
    pub arn: String,
    add: Tags,
    remove: Vec<String>,
}

impl TagChange {
    /// What `TagResource` asks for, in a service whose ARNs have at most `longest_arn` characters; `tags` reads the tags as
    /// that service writes them.
    ///
    /// # Errors
    ///
    /// What `tags` refuses, and what does not meet the model's constraints, by `refuse`.
    pub fn adding<R>(
        input: &Document,
        longest_arn: usize,
        tags: impl FnOnce(&Input<'_>) -> Result<Tags, R>,
        refuse: impl FnOnce(String) -> R,
    ) -> Result<TagChange, R> {
        let violations = Violations::default();
        let input = Input::of(input, &violations);
        let arn = arn(&input, longest_arn);
        input.require("Tags");
        let add = tags(&input)?;
        violations.check().map_err(refuse)?;
        Ok(TagChange { arn, add, remove: Vec::new() })
    }

    /// What `UntagResource` asks for.
    ///
    /// # Errors
    ///
    /// What does not meet the model's constraints, as a message.
    pub fn removing(input: &Document, longest_arn: usize) -> Result<TagChange, String> {
        let violations = Violations::default();
        let input = Input::of(input, &violations);
        let arn = arn(&input, longest_arn);
        input.require("TagKeys");
        let remove = input.texts("TagKeys", 0..=200, 1..=128).into_iter().map(str::to_owned).collect();
        violations.check()?;
        Ok(TagChange { arn, add: Tags::new(), remove })
    }

    /// Changes a resource's tags.
    pub fn apply(self, tags: &mut Tags) {
        tags.extend(self.add);
        tags.retain(|key, _| !self.remove.contains(key));
    }
}

/// Whose tags `ListTagsForResource` asks for.
///
/// # Errors
///
/// What does not meet the model's constraints, as a message.
pub fn listed(input: &Document, longest_arn: usize) -> Result<String, String> {
    let violations = Violations::default();
    let arn = arn(&Input::of(input, &violations), longest_arn);
    violations.check()?;
    Ok(arn)
}

fn arn(input: &Input<'_>, longest: usize) -> String {
    input.required_text("ResourceARN", 1..=longest).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(member: &'static str, value: Document) -> Document {
        Document::structure([("ResourceARN", "arn:x".into()), (member, value)])
    }

    fn team(_: &Input<'_>) -> Result<Tags, String> {
        Ok(Tags::from([("team".to_owned(), "chat".to_owned())]))
    }

    #[test]
    fn tags_are_added_over_those_that_are_there_and_taken_off() {
        let mut tags = Tags::from([("team".to_owned(), "search".to_owned()), ("stage".to_owned(), "prod".to_owned())]);
        let change = TagChange::adding(&request("Tags", Document::structure([])), 9, team, |message| message).unwrap();
        assert_eq!(change.arn, "arn:x");
        change.apply(&mut tags);
        TagChange::removing(&request("TagKeys", Document::List(vec!["stage".into()])), 9).unwrap().apply(&mut tags);
        assert_eq!(tags, team_only());
    }

    fn team_only() -> Tags {
        Tags::from([("team".to_owned(), "chat".to_owned())])
    }

    #[test]
    fn what_is_missing_or_too_long_is_told_before_anything_is_looked_up() {
        let refused = |input: &Document, longest| TagChange::removing(input, longest).unwrap_err();
        assert!(refused(&request("Tags", Document::Null), 9).contains("'tagKeys'"));
        let keys = request("TagKeys", Document::List(Vec::new()));
        assert!(refused(&keys, 4).contains("length less than or equal to 4"));
        assert!(listed(&Document::structure([]), 9).unwrap_err().contains("'resourceARN'"));
        let adding = TagChange::adding(&Document::structure([]), 9, team, |message| message);
        assert!(adding.unwrap_err().starts_with("2 validation errors"));
    }
}
