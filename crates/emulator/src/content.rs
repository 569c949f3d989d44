//! The contents of messages as the chat APIs spell them, and how they become part of a prompt.

use std::fmt;

use isotherm_engine_model::ChatTemplate;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A string, or a list of parts. Covers OpenAI's chat and responses forms and Anthropic's blocks in one.
#[derive(Debug, Default)]
pub(crate) struct Content(Vec<Part>);

/// One part; which fields are there depends on its type, and unknown ones are ignored as vLLM does.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Part {
    text: Option<String>,
    image_url: Option<Link>,
    input_audio: Option<Link>,
    source: Option<Link>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
    content: Option<Content>,
}

/// Where a medium comes from: a URL (`data:` included) or bare bytes in base64.
#[derive(Debug)]
struct Link(String);

impl Content {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self(vec![Part { text: Some(text.into()), ..Part::default() }])
    }

    pub(crate) fn render(&self, template: &mut ChatTemplate) {
        for part in &self.0 {
            part.render(template);
        }
    }

    /// The text alone, for APIs that score or embed it.
    pub(crate) fn plain_text(&self) -> String {
        self.0.iter().filter_map(|part| part.text.as_deref()).collect()
    }

    /// Bytes that it keeps in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(Part::bytes).sum()
    }
}

impl Part {
    fn render(&self, template: &mut ChatTemplate) {
        if let Some(text) = &self.text {
            template.text(text);
        }
        for link in self.media() {
            template.medium(link.0.as_bytes());
        }
        if let Some(name) = &self.name {
            template.text(name);
        }
        if let Some(input) = &self.input {
            template.text(input.get());
        }
        if let Some(content) = &self.content {
            content.render(template);
        }
    }

    fn media(&self) -> impl Iterator<Item = &Link> {
        [&self.image_url, &self.input_audio, &self.source].into_iter().flatten()
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.text.as_ref().map_or(0, String::len)
            + self.media().map(|link| link.0.len()).sum::<usize>()
            + self.name.as_ref().map_or(0, String::len)
            + self.input.as_ref().map_or(0, |input| input.get().len())
            + self.content.as_ref().map_or(0, Content::bytes)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("content: a string or a list of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::text(text))
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(Content::text(text))
            }

            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
                let mut content = Vec::new();
                while let Some(part) = parts.next_element()? {
                    content.push(part);
                }
                Ok(Content(content))
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}

impl<'de> Deserialize<'de> for Link {
    /// `"url"`, `{"url": …}` (OpenAI) or `{"data": …}` (Anthropic, audio).
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Url(String),
            Object { url: Option<String>, data: Option<String> },
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Url(url) => Self(url),
            Form::Object { url, data } => Self(url.or(data).unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(json: &str) -> usize {
        let content: Content = serde_json::from_str(json).unwrap();
        let mut template = ChatTemplate::new();
        template.open_message("user");
        content.render(&mut template);
        template.into_prompt().len()
    }

    #[test]
    fn a_string_equals_its_single_text_part() {
        assert_eq!(tokens(r#""warm words""#), tokens(r#"[{"type": "text", "text": "warm words"}]"#));
        assert_eq!(tokens(r#""warm words""#), tokens(r#"[{"type": "input_text", "text": "warm words"}]"#));
    }

    #[test]
    fn every_spelling_of_an_image_takes_the_same_tokens() {
        let spellings = [
            r#"[{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]"#,
            r#"[{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]"#,
            r#"[{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]"#,
        ];
        let counts = spellings.map(tokens);
        assert!(counts[0] > tokens("null"));
        assert_eq!(counts, [counts[0]; 3]);
    }

    #[test]
    fn tool_results_are_read_to_the_bottom() {
        let block = r#"[{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "12 °C"}]}]"#;
        assert_eq!(tokens(block), tokens(r#""12 °C""#));
    }

    #[test]
    fn a_wrong_type_is_named() {
        let error = serde_json::from_str::<Content>("7").unwrap_err().to_string();
        assert!(error.contains("a string or a list of parts"), "{error}");
    }
}
