//! AWS query: a form with names like `Dimensions.member.1.Name` comes in, XML goes out.

use std::collections::BTreeMap;
use std::fmt::Write;

use isotherm_wire::aws::{escape_xml, form_fields};

use super::{Asked, XML_NAMESPACE};
use crate::Refusal;
use crate::document::{Document, rfc3339};

/// How deep names may nest; CloudWatch's deepest input is 9 deep.
const DEEPEST: usize = 16;

/// Reads a form.
pub(crate) fn read(form: &[u8]) -> Result<Asked, Refusal> {
    let mut root = Node::default();
    let mut operation = String::new();
    let fields = form_fields(form).ok_or_else(|| Refusal::serialization("The form is no UTF-8."))?;
    for (name, value) in fields {
        match name.as_str() {
            "Action" => operation = value,
            "Version" => {}
            _ if name.split('.').count() > DEEPEST => {
                return Err(Refusal::serialization(format!("The parameter {name:.80} nests too deeply.")));
            }
            _ => root.place(&name).value = Some(value),
        }
    }
    Ok(Asked { operation, input: root.into_structure() })
}

/// The answer to an operation.
pub(crate) fn written(operation: &str, output: &Document, id: &str) -> Vec<u8> {
    let mut xml = format!("<{operation}Response xmlns=\"{XML_NAMESPACE}\">");
    if *output != Document::Null {
        element(&mut xml, &format!("{operation}Result"), output);
    }
    let id = escape_xml(id);
    xml += &format!("<ResponseMetadata><RequestId>{id}</RequestId></ResponseMetadata></{operation}Response>");
    xml.into_bytes()
}

/// A refusal.
pub(crate) fn refused(refusal: &Refusal, id: &str) -> Vec<u8> {
    let error = Document::structure([
        ("Type", refusal.fault().into()),
        ("Code", refusal.code.into()),
        ("Message", refusal.message.as_str().into()),
    ]);
    let mut xml = format!("<ErrorResponse xmlns=\"{XML_NAMESPACE}\">");
    element(&mut xml, "Error", &error);
    xml += &format!("<RequestId>{}</RequestId></ErrorResponse>", escape_xml(id));
    xml.into_bytes()
}

/// A name's parts as a tree.
#[derive(Debug, Default)]
struct Node {
    value: Option<String>,
    members: BTreeMap<String, Node>,
    /// By number, so that the order in the form says nothing.
    items: BTreeMap<u64, Node>,
}

impl Node {
    fn place(&mut self, name: &str) -> &mut Node {
        let mut node = self;
        let mut parts = name.split('.').peekable();
        while let Some(part) = parts.next() {
            let number = parts.peek().filter(|_| part == "member").and_then(|number| number.parse().ok());
            node = match number {
                Some(number) => {
                    parts.next();
                    node.items.entry(number).or_default()
                }
                None => node.members.entry(part.to_owned()).or_default(),
            };
        }
        node
    }

    fn into_document(self) -> Document {
        if !self.items.is_empty() {
            return Document::List(self.items.into_values().map(Node::into_document).collect());
        }
        match self.value {
            Some(value) if self.members.is_empty() => Document::Text(value),
            _ => self.into_structure(),
        }
    }

    fn into_structure(self) -> Document {
        let members = self.members.into_iter().map(|(name, node)| (name.into(), node.into_document()));
        Document::Structure(members.collect())
    }
}

fn element(xml: &mut String, name: &str, document: &Document) {
    // Writing into memory does not fail.
    let _ = write!(xml, "<{name}>");
    match document {
        Document::Null => {}
        Document::Boolean(value) => xml.push_str(if *value { "true" } else { "false" }),
        Document::Number(number) => xml.push_str(&number.to_string()),
        Document::Integer(number) => xml.push_str(&number.to_string()),
        Document::Timestamp(seconds) => xml.push_str(&rfc3339(*seconds)),
        Document::Text(text) => xml.push_str(&escape_xml(text)),
        Document::List(values) => values.iter().for_each(|value| element(xml, "member", value)),
        Document::Structure(members) => members.iter().for_each(|(name, value)| element(xml, name, value)),
        Document::Map(entries) => {
            for (name, value) in entries {
                let _ = write!(xml, "<entry><key>{}</key>", escape_xml(name));
                element(xml, "value", value);
                xml.push_str("</entry>");
            }
        }
    }
    let _ = write!(xml, "</{name}>");
}
