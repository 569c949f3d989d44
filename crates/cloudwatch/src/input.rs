//! Reads the members of a request by the constraints of the API's model, and words what does not meet them as AWS does.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use crate::document::Document;

/// Everything that is wrong with a request, in the order in which it was read.
#[derive(Debug, Default)]
pub struct Violations(RefCell<Vec<String>>);

impl Violations {
    /// The message of all violations, or nothing when there are none.
    ///
    /// # Errors
    ///
    /// `N validation errors detected: Value 'x' at 'path' failed to satisfy constraint: …; …`
    pub fn check(&self) -> Result<(), String> {
        let all = self.0.borrow();
        match all.len() {
            0 => Ok(()),
            1 => Err(format!("1 validation error detected: {}", all[0])),
            n => Err(format!("{n} validation errors detected: {}", all.join("; "))),
        }
    }

    fn note(&self, value: Option<&str>, path: &str, constraint: &str) {
        let value = value.map_or("Value null".to_owned(), |value| format!("Value '{value:.80}'"));
        self.0.borrow_mut().push(format!("{value} at '{path}' failed to satisfy constraint: {constraint}"));
    }
}

/// A structure of a request, and where it stands in it.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    document: &'a Document,
    path: String,
    violations: &'a Violations,
}

impl<'a> Input<'a> {
    /// The request as a whole.
    pub fn of(document: &'a Document, violations: &'a Violations) -> Input<'a> {
        Input { document, path: String::new(), violations }
    }

    /// Whether the member is there.
    pub fn has(&self, name: &str) -> bool {
        *self.document.member(name) != Document::Null
    }

    /// The member as it came.
    pub fn raw(&self, name: &str) -> &'a Document {
        self.document.member(name)
    }

    /// A text whose length in characters lies in `length`.
    pub fn text(&self, name: &str, length: RangeInclusive<usize>) -> Option<&'a str> {
        let text = self.typed(name, Document::as_text, "Member must be a string")?;
        self.check_length(text.chars().count(), text, name, length);
        Some(text)
    }

    /// As [`Input::text`], and it must be there; the empty text stands for one that is not.
    pub fn required_text(&self, name: &str, length: RangeInclusive<usize>) -> &'a str {
        self.require(name);
        self.text(name, length).unwrap_or_default()
    }

    /// A word out of a closed set.
    pub fn word<T>(&self, name: &str, words: &[&str], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let word = self.typed(name, Document::as_text, "Member must be a string")?;
        let parsed = parse(word);
        if parsed.is_none() {
            self.violation(word, name, &format!("Member must satisfy enum value set: [{}]", words.join(", ")));
        }
        parsed
    }

    /// A whole number in these bounds.
    pub fn integer(&self, name: &str, bounds: RangeInclusive<u32>) -> Option<u32> {
        let number = self.typed(name, Document::as_number, "Member must be a number")?;
        if number.fract() != 0.0 {
            self.violation(&number.to_string(), name, "Member must be a whole number");
        } else if number < f64::from(*bounds.start()) {
            let constraint = format!("Member must have value greater than or equal to {}", bounds.start());
            self.violation(&number.to_string(), name, &constraint);
        } else if number > f64::from(*bounds.end()) {
            let constraint = format!("Member must have value less than or equal to {}", bounds.end());
            self.violation(&number.to_string(), name, &constraint);
        } else {
            // Whole and within the bounds of a u32.
            return Some(number as u32);
        }
        None
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.typed(name, Document::as_number, "Member must be a number")
    }

    /// A truth value.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        self.typed(name, Document::as_boolean, "Member must be a boolean")
    }

    /// A moment, in whole seconds of Unix time.
    pub fn timestamp(&self, name: &str) -> Option<u64> {
        let seconds = self.typed(name, Document::as_timestamp, "Member must be a timestamp")?;
        // A cast saturates: before 1970 is 1970.
        Some(seconds as u64)
    }

    /// A structure.
    pub fn structure(&self, name: &str) -> Option<Input<'a>> {
        let is_structure = |document: &'a Document| match document {
            Document::Structure(_) | Document::Map(_) => Some(document),
            _ => None,
        };
        let document = self.typed(name, is_structure, "Member must be a structure")?;
        Some(Input { document, path: self.path_of(name), violations: self.violations })
    }

    /// The structures of a list that has so many members.
    pub fn structures(&self, name: &str, length: RangeInclusive<usize>) -> Vec<Input<'a>> {
        let members = self.list(name, length).into_iter().enumerate();
        let input = |(index, document)| Input {
            document,
            path: format!("{}.{}.member", self.path_of(name), index + 1),
            violations: self.violations,
        };
        members.map(input).collect()
    }

    /// The texts of a list that has so many members.
    pub fn texts(&self, name: &str, length: RangeInclusive<usize>, each: RangeInclusive<usize>) -> Vec<&'a str> {
        let mut texts = Vec::new();
        for (index, document) in self.list(name, length).into_iter().enumerate() {
            let path = format!("{name}.{}.member", index + 1);
            match document.as_text() {
                Some(text) => {
                    self.check_length(text.chars().count(), text, &path, each.clone());
                    texts.push(text);
                }
                None => self.violation("?", &path, "Member must be a string"),
            }
        }
        texts
    }

    /// Notes that the member must be there, if it is not.
    pub fn require(&self, name: &str) {
        if !self.has(name) {
            self.violations.note(None, &self.path_of(name), "Member must not be null");
        }
    }

    /// Notes that a member does not meet a constraint.
    pub fn violation(&self, value: &str, name: &str, constraint: &str) {
        self.violations.note(Some(value), &self.path_of(name), constraint);
    }

    fn list(&self, name: &str, length: RangeInclusive<usize>) -> Vec<&'a Document> {
        // A list without members looks like an empty text where a protocol has no types.
        let as_list = |document: &'a Document| match document {
            Document::Text(text) if text.is_empty() => Some(&[][..]),
            other => other.as_list(),
        };
        let Some(list) = self.typed(name, as_list, "Member must be a list") else { return Vec::new() };
        self.check_length(list.len(), &format!("[{} members]", list.len()), name, length);
        list.iter().collect()
    }

    fn typed<T>(&self, name: &str, read: impl Fn(&'a Document) -> Option<T>, constraint: &str) -> Option<T> {
        let document = self.document.member(name);
        if *document == Document::Null {
            return None;
        }
        let value = read(document);
        if value.is_none() {
            self.violation(document.as_text().unwrap_or("?"), name, constraint);
        }
        value
    }

    fn check_length(&self, length: usize, value: &str, name: &str, allowed: RangeInclusive<usize>) {
        let (least, most) = (allowed.start(), allowed.end());
        let constraint = if length < *least {
            format!("Member must have length greater than or equal to {least}")
        } else if length > *most {
            format!("Member must have length less than or equal to {most}")
        } else {
            return;
        };
        self.violation(value, name, &constraint);
    }

    /// `alarmName`, `metricDataQueries.1.member.id`: members begin with a small letter in AWS's messages.
    fn path_of(&self, name: &str) -> String {
        let mut letters = name.chars();
        let first = letters.next().map(|letter| letter.to_ascii_lowercase());
        let name: String = first.into_iter().chain(letters).collect();
        if self.path.is_empty() { name } else { format!("{}.{name}", self.path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_wrong_is_told_in_awss_words() {
        let document = Document::structure([
            ("StateValue", "BROKEN".into()),
            ("StateReason", "x".repeat(5).into()),
            ("Items", Document::list([Document::structure([("Period", 0.0.into())])])),
        ]);
        let violations = Violations::default();
        let input = Input::of(&document, &violations);
        assert_eq!(input.required_text("AlarmName", 1..=255), "");
        assert_eq!(input.word("StateValue", &["OK", "ALARM"], |_| None::<()>), None);
        input.text("StateReason", 0..=4);
        for item in input.structures("Items", 0..=1) {
            item.integer("Period", 1..=u32::MAX);
        }
        assert_eq!(
            violations.check().expect_err("four mistakes"),
            "4 validation errors detected: \
             Value null at 'alarmName' failed to satisfy constraint: Member must not be null; \
             Value 'BROKEN' at 'stateValue' failed to satisfy constraint: \
             Member must satisfy enum value set: [OK, ALARM]; \
             Value 'xxxxx' at 'stateReason' failed to satisfy constraint: \
             Member must have length less than or equal to 4; \
             Value '0' at 'items.1.member.period' failed to satisfy constraint: \
             Member must have value greater than or equal to 1"
        );
    }

    #[test]
    fn what_meets_its_constraints_is_read() {
        let document = Document::structure([
            ("Names", Document::list(["a", "b"])),
            ("Period", "60".into()),
            ("Stat", Document::structure([("Unit", "Count".into())])),
        ]);
        let violations = Violations::default();
        let input = Input::of(&document, &violations);
        assert_eq!(input.texts("Names", 0..=2, 1..=1), ["a", "b"]);
        assert_eq!(input.integer("Period", 1..=100), Some(60));
        assert_eq!(input.structure("Stat").and_then(|stat| stat.text("Unit", 0..=9)), Some("Count"));
        assert_eq!((input.text("Absent", 1..=2), violations.check()), (None, Ok(())));
    }
}
