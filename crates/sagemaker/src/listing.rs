//! Lists of resources: filtered, sorted, page by page.
//!
//! A token says after which resource a page begins, not how many came before: what is created or deleted between two
//! pages neither repeats nor hides another resource.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ServiceError;
use crate::records::Identity;
use crate::shapes::Timestamp;

const DEFAULT_PAGE: usize = 10;

/// What any of the list operations is asked for; each has been checked against its own shape.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct ListRequest {
    next_token: Option<String>,
    max_results: Option<usize>,
    sort_by: SortBy,
    sort_order: SortOrder,
    name_contains: Option<String>,
    creation_time_before: Option<Timestamp>,
    creation_time_after: Option<Timestamp>,
    last_modified_time_before: Option<Timestamp>,
    last_modified_time_after: Option<Timestamp>,
    status_equals: Option<String>,
    endpoint_name_equals: Option<String>,
    variant_name_equals: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum SortBy {
    Name,
    #[default]
    CreationTime,
    Status,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum SortOrder {
    Ascending,
    #[default]
    Descending,
}

/// A resource that is listed.
pub(crate) trait Listed {
    fn identity(&self) -> &Identity;

    /// When it was changed last.
    fn modified_at(&self) -> Timestamp {
        self.identity().created_at
    }

    /// SageMaker's word for where it is in its life; empty for resources that have no such thing.
    fn status(&self) -> &'static str {
        ""
    }

    /// The endpoint that hosts it, and the variant there.
    fn host(&self) -> (Option<&str>, Option<&str>) {
        (None, None)
    }

    /// What the list says of it.
    fn summary(&self) -> Value;
}

/// A page of those that were asked for, under the list's name.
pub(crate) fn page<T: Listed>(request: ListRequest, list: &str, records: Vec<T>) -> Result<Value, ServiceError> {
    let begin = request.next_token.as_deref().map(|token| Token::read(token, list, &request)).transpose()?;
    let mut found: Vec<(String, T)> = records
        .into_iter()
        .filter(|record| request.wants(record))
        .map(|record| (request.position(&record), record))
        .filter(|(position, _)| begin.as_deref().is_none_or(|begin| request.comes_after(position, begin)))
        .collect();
    found.sort_by(|(one, _), (other, _)| match request.sort_order {
        SortOrder::Ascending => one.cmp(other),
        SortOrder::Descending => other.cmp(one),
    });
    let size = request.max_results.unwrap_or(DEFAULT_PAGE);
    let more = found.len() > size;
    found.truncate(size);
    let mut answer = Map::new();
    if let Some((last, _)) = found.last().filter(|_| more) {
        let token = Token { list: list.to_owned(), request: request.without_place(), after: last.clone() };
        answer.insert(String::from("NextToken"), Value::String(token.write()?));
    }
    answer.insert(list.to_owned(), found.iter().map(|(_, record)| record.summary()).collect());
    Ok(Value::Object(answer))
}

/// That a token is of no use, in AWS's words.
pub(crate) fn bad_token(reason: &str) -> ServiceError {
    ServiceError::Validation(format!("Invalid pagination token because \"{reason}\"."))
}

impl ListRequest {
    fn wants<T: Listed>(&self, record: &T) -> bool {
        let before = |limit: Option<Timestamp>, time| limit.is_none_or(|limit| time < limit);
        let after = |limit: Option<Timestamp>, time| limit.is_none_or(|limit| time >= limit);
        let same = |wanted: &Option<String>, given: Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| given.is_some_and(|given| given.eq_ignore_ascii_case(wanted)))
        };
        let identity = record.identity();
        let (endpoint, variant) = record.host();
        self.name_contains.as_ref().is_none_or(|part| identity.name.contains(part.as_str()))
            && before(self.creation_time_before, identity.created_at)
            && after(self.creation_time_after, identity.created_at)
            && before(self.last_modified_time_before, record.modified_at())
            && after(self.last_modified_time_after, record.modified_at())
            && self.status_equals.as_ref().is_none_or(|status| status == record.status())
            && same(&self.endpoint_name_equals, endpoint)
            && same(&self.variant_name_equals, variant)
    }

    /// Where a resource stands in the order asked for; no two stand at the same place.
    fn position<T: Listed>(&self, record: &T) -> String {
        let identity = record.identity();
        let name = identity.name.to_ascii_lowercase();
        match self.sort_by {
            SortBy::Name => name,
            SortBy::CreationTime => format!("{:020}/{name}", identity.created_at.milliseconds()),
            SortBy::Status => format!("{}/{name}", record.status()),
        }
    }

    fn comes_after(&self, position: &str, begin: &str) -> bool {
        match self.sort_order {
            SortOrder::Ascending => position > begin,
            SortOrder::Descending => position < begin,
        }
    }

    /// What all pages of one list have in common.
    fn without_place(&self) -> ListRequest {
        ListRequest { next_token: None, max_results: None, ..self.clone() }
    }
}

/// What a `NextToken` holds.
#[derive(Serialize, Deserialize)]
struct Token {
    list: String,
    request: ListRequest,
    after: String,
}

impl Token {
    fn write(&self) -> Result<String, ServiceError> {
        Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(self)?))
    }

    /// After which position the page begins.
    fn read(token: &str, list: &str, request: &ListRequest) -> Result<String, ServiceError> {
        let json = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad_token("it is not one that a list gave"))?;
        let token: Token = serde_json::from_slice(&json).map_err(|_| bad_token("it is not one that a list gave"))?;
        if token.list != list || token.request != request.without_place() {
            return Err(bad_token("it belongs to a list with other filters or another order"));
        }
        Ok(token.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(Identity);

    impl Listed for Thing {
        fn identity(&self) -> &Identity {
            &self.0
        }

        fn summary(&self) -> Value {
            Value::String(self.0.name.clone())
        }
    }

    fn things(names: &[(&str, u64)]) -> Vec<Thing> {
        let thing = |&(name, seconds): &(&str, u64)| {
            Thing(Identity {
                account: String::from("1"),
                region: String::from("r"),
                name: name.to_owned(),
                arn: String::new(),
                created_at: Timestamp::from_milliseconds(seconds * 1_000),
            })
        };
        names.iter().map(thing).collect()
    }

    fn request(json: Value) -> ListRequest {
        serde_json::from_value(json).unwrap()
    }

    fn names(answer: &Value) -> Vec<&str> {
        answer["Things"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
    }

    #[test]
    fn the_newest_come_first_unless_asked_otherwise() {
        let all = [("b", 1), ("a", 2), ("C", 2)];
        let listed = |json: Value| page(request(json), "Things", things(&all)).unwrap();
        assert_eq!(names(&listed(serde_json::json!({}))), ["C", "a", "b"]);
        assert_eq!(names(&listed(serde_json::json!({ "SortBy": "Name", "SortOrder": "Ascending" }))), ["a", "b", "C"]);
        assert_eq!(names(&listed(serde_json::json!({ "CreationTimeAfter": 2 }))), ["C", "a"]);
        assert_eq!(names(&listed(serde_json::json!({ "CreationTimeBefore": 2, "NameContains": "b" }))), ["b"]);
    }

    #[test]
    fn pages_neither_repeat_nor_hide_what_stays() {
        let ask = |token: Option<&Value>| {
            request(serde_json::json!({ "MaxResults": 2, "SortBy": "Name", "NextToken": token }))
        };
        let first = page(ask(None), "Things", things(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)])).unwrap();
        assert_eq!(names(&first), ["d", "c"]);
        let after_changes = things(&[("a", 1), ("b", 1), ("d", 1), ("e", 1)]);
        let second = page(ask(first.get("NextToken")), "Things", after_changes).unwrap();
        assert_eq!(names(&second), ["b", "a"]);
        assert_eq!(second.get("NextToken"), None);
    }

    #[test]
    fn tokens_of_other_lists_are_refused() {
        let first =
            page(request(serde_json::json!({ "MaxResults": 1 })), "Things", things(&[("a", 1), ("b", 1)])).unwrap();
        let token = &first["NextToken"];
        for (json, list) in [
            (serde_json::json!({ "NextToken": token, "NameContains": "a" }), "Things"),
            (serde_json::json!({ "NextToken": token }), "Others"),
            (serde_json::json!({ "NextToken": "x!" }), "Things"),
        ] {
            let refused = page(request(json), list, things(&[])).unwrap_err().to_string();
            assert!(refused.starts_with("Invalid pagination token because \"it "), "{refused}");
        }
    }
}
