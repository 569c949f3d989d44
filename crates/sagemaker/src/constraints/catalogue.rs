//! The shapes of `closed-set.shapes`, read.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::pattern::Pattern;

/// Every input shape of the control plane.
pub(super) static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| match Catalogue::parse(TEXT) {
    Ok(catalogue) => catalogue,
    // The text is part of the program, and a test reads it.
    Err(problem) => unreachable!("closed-set.shapes, {problem}"),
});

const TEXT: &str = include_str!("closed-set.shapes");

/// Shapes by name.
#[derive(Debug)]
pub(super) struct Catalogue {
    structures: HashMap<&'static str, Vec<Member>>,
}

/// A member of a structure.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) kind: Kind,
}

/// What a value must be.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Structure(&'static str),
    List { size: Bounds, of: Box<Kind> },
    Map { size: Bounds, key: Text, value: Text },
    Text(Text),
    Integer { range: Bounds, one_of: Vec<i64> },
    Float { least: Option<f64> },
    Boolean,
    Timestamp,
}

/// What a text must be.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) length: Bounds,
    pub(super) pattern: Option<Pattern>,
    pub(super) one_of: Vec<&'static str>,
}

/// Both ends are allowed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
}

impl Catalogue {
    /// The members of a structure; none for a name that is not there.
    pub(super) fn members(&self, structure: &str) -> &[Member] {
        self.structures.get(structure).map_or(&[], Vec::as_slice)
    }

    fn parse(text: &'static str) -> Result<Catalogue, String> {
        let mut reader = Reader::default();
        let mut structures: HashMap<&'static str, Vec<Member>> = HashMap::new();
        let mut current = None;
        for (index, line) in text.lines().enumerate() {
            let problem = |problem: String| format!("line {}: {problem}", index + 1);
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            if let Some(member) = line.strip_prefix("  ") {
                let structure = current.ok_or_else(|| problem(String::from("a member without a structure")))?;
                structures.entry(structure).or_default().push(reader.member(member).map_err(problem)?);
            } else if let Some((name, kind)) = line.split_once(" = ") {
                let kind = reader.kind(kind).map_err(problem)?;
                reader.named.insert(name, kind);
            } else {
                current = Some(line);
                structures.entry(line).or_default();
            }
        }
        let missing = reader.references.iter().find(|name| !structures.contains_key(*name));
        match missing {
            Some(name) => Err(format!("{name} is not there")),
            None => Ok(Catalogue { structures }),
        }
    }
}

/// Reads types, and knows the named ones that came before.
#[derive(Default)]
struct Reader {
    named: HashMap<&'static str, Kind>,
    references: Vec<&'static str>,
}

impl Reader {
    fn member(&mut self, line: &'static str) -> Result<Member, String> {
        let (name, kind) = line.split_once(':').ok_or("a member needs a colon")?;
        let (required, name) = match name.strip_prefix("* ") {
            Some(name) => (true, name),
            None => (false, name.trim_start()),
        };
        Ok(Member { name, required, kind: self.kind(kind.trim())? })
    }

    fn kind(&mut self, text: &'static str) -> Result<Kind, String> {
        let (word, rest) = text.split_at(text.find([' ', '[']).unwrap_or(text.len()));
        match word {
            "string" => Ok(Kind::Text(self.text(text)?)),
            "integer" => {
                let (range, rest) = bounds(rest)?;
                let one_of = choices(rest).map(|choice| choice.parse().map_err(|error| format!("{choice}: {error}")));
                Ok(Kind::Integer { range, one_of: one_of.collect::<Result<_, _>>()? })
            }
            "float" => Ok(Kind::Float { least: least_float(rest)? }),
            "boolean" => Ok(Kind::Boolean),
            "timestamp" => Ok(Kind::Timestamp),
            "list" => {
                let (size, of) = bounds(rest)?;
                let of = of.strip_prefix("of ").ok_or("a list needs `of`")?;
                Ok(Kind::List { size, of: Box::new(self.kind(of)?) })
            }
            "map" => {
                let (size, of) = bounds(rest)?;
                let (key, value) = of
                    .strip_prefix("of ")
                    .and_then(|of| of.split_once(" -> "))
                    .ok_or("a map needs `of` and an arrow")?;
                Ok(Kind::Map { size, key: self.text(key)?, value: self.text(value)? })
            }
            name => Ok(self.named.get(name).cloned().unwrap_or_else(|| {
                self.references.push(name);
                Kind::Structure(name)
            })),
        }
    }

    fn text(&self, text: &'static str) -> Result<Text, String> {
        let rest = text.strip_prefix("string").ok_or("only strings may be here")?;
        let (length, rest) = bounds(rest)?;
        let pattern = rest.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).map(Pattern::parse).transpose()?;
        Ok(Text { length, pattern, one_of: choices(rest).collect() })
    }
}

/// Reads `[least..most]`, both optional, and gives the rest.
fn bounds(text: &'static str) -> Result<(Bounds, &'static str), String> {
    let text = text.trim_start();
    let Some((inside, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) else {
        return Ok((Bounds::default(), text));
    };
    let (least, most) = inside.split_once("..").ok_or("bounds need two dots")?;
    let end = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|error| format!("{text}: {error}")),
    };
    Ok((Bounds { least: end(least)?, most: end(most)? }, rest.trim_start()))
}

fn least_float(text: &'static str) -> Result<Option<f64>, String> {
    let Some(least) = text.trim_start().strip_prefix('[').and_then(|text| text.strip_suffix("..]")) else {
        return Ok(None);
    };
    least.parse().map(Some).map_err(|error| format!("{least}: {error}"))
}

/// Reads `{one|of|these}`; nothing where there are no braces.
fn choices(text: &'static str) -> impl Iterator<Item = &'static str> {
    let inside = text.trim_start().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    inside.into_iter().flat_map(|inside| inside.split('|'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_file_is_understood() {
        let catalogue = Catalogue::parse(TEXT).unwrap();
        assert_eq!(catalogue.structures.keys().filter(|name| name.ends_with("Input")).count(), 23);
        let name = &catalogue.members("CreateModelInput")[0];
        assert!(name.required && name.name == "ModelName");
        let Kind::Text(text) = &name.kind else { panic!("{name:?}") };
        assert_eq!((text.length.least, text.length.most), (Some(0), Some(63)));
        assert!(text.pattern.is_some());
    }

    #[test]
    fn a_line_that_says_nothing_is_named() {
        for (text, problem) in [
            ("A\n    B: list[1..2] C", "line 2: a list needs `of`"),
            ("    B: string", "line 1: a member without a structure"),
            ("A\n  * B: integer [1-2]", "line 2: bounds need two dots"),
            ("A\n  * B: Gone", "Gone is not there"),
        ] {
            assert_eq!(Catalogue::parse(text).unwrap_err(), problem);
        }
    }
}
