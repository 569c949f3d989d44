//! Following a JSON text that passes in pieces of any size, keeping only a few values near its surface.

use memchr::memchr2;

/// The longest value that is kept, in bytes. A longer one is passed over.
const LONGEST_VALUE: usize = 8 * 1024;

/// The longest key that can be told from others, in bytes.
const LONGEST_KEY: usize = 32;

/// Which values are wanted: by their key, and by the key of the object they are in (empty at the top).
type Wanted = fn(parent: &[u8], key: &[u8]) -> bool;

/// Follows a JSON text and keeps the objects and strings that are wanted, at the top level and one below. Trusts the
/// text to be JSON: from anything else it finds nothing, or nonsense, but stays within its memory.
#[derive(Debug)]
pub(crate) struct Watch {
    wanted: Wanted,
    place: Place,
    /// How many containers are open.
    depth: usize,
    /// The keys last read at depth 1 and 2, empty for an array.
    keys: [Vec<u8>; 2],
    /// The containers open at depth 1 and 2 are objects.
    objects: [bool; 2],
    /// A string at depth 1 or 2 would be a key, not a value.
    key_is_due: bool,
    /// The depth around the value that is being kept.
    keeping: Option<usize>,
    kept: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Key,
    String,
    /// Behind a backslash in a key or string.
    Escape {
        in_key: bool,
    },
}

impl Watch {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Watch {
            wanted,
            place: Place::Outside,
            depth: 0,
            keys: [Vec::new(), Vec::new()],
            objects: [false; 2],
            key_is_due: false,
            keeping: None,
            kept: Vec::new(),
        }
    }

    /// Follows the next piece. `found` gets each wanted value that ends in it: its key, and itself as it is written.
    pub(crate) fn follow(&mut self, piece: &[u8], found: &mut dyn FnMut(&[u8], &[u8])) {
        // Where the part of the kept value begins that has not been copied yet.
        let mut keep_from = 0;
        let mut at = 0;
        while at < piece.len() {
            let was_keeping = self.keeping.is_some();
            let ended = match self.place {
                Place::Outside => {
                    if self.depth > 2 {
                        at += to_structure(&piece[at..]);
                    }
                    let Some(&byte) = piece.get(at) else { break };
                    self.outside(byte)
                }
                Place::Escape { in_key } => {
                    self.place = if in_key { Place::Key } else { Place::String };
                    false
                }
                Place::Key | Place::String => {
                    let run = &piece[at..];
                    let length = memchr2(b'"', b'\\', run).unwrap_or(run.len());
                    self.read_key(&run[..length]);
                    at += length;
                    let Some(&byte) = piece.get(at) else { break };
                    self.quote_or_backslash(byte)
                }
            };
            if !was_keeping && self.keeping.is_some() {
                keep_from = at;
            }
            at += 1;
            if ended {
                self.keep(&piece[keep_from..at]);
                self.give(found);
            }
        }
        if self.keeping.is_some() {
            self.keep(&piece[keep_from..]);
        }
    }

    /// A byte outside of strings. True when it ends the kept value.
    fn outside(&mut self, byte: u8) -> bool {
        match byte {
            b'"' if self.key_is_due && self.in_shallow_object() => {
                self.keys[self.depth - 1].clear();
                self.place = Place::Key;
            }
            b'"' => {
                self.start_keeping();
                self.place = Place::String;
            }
            b'{' | b'[' => {
                if byte == b'{' {
                    self.start_keeping();
                }
                self.depth += 1;
                if let Some(level @ 0..2) = self.depth.checked_sub(1) {
                    self.objects[level] = byte == b'{';
                    self.keys[level].clear();
                }
                self.key_is_due = true;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.key_is_due = false;
                return self.keeping == Some(self.depth);
            }
            b',' => self.key_is_due = true,
            b':' => self.key_is_due = false,
            _ => {}
        }
        false
    }

    /// The byte that ends a run inside a key or string. True when it ends the kept value.
    fn quote_or_backslash(&mut self, byte: u8) -> bool {
        if byte == b'\\' {
            self.place = Place::Escape { in_key: self.place == Place::Key };
            return false;
        }
        let was_value = self.place == Place::String;
        self.place = Place::Outside;
        was_value && self.keeping == Some(self.depth)
    }

    fn in_shallow_object(&self) -> bool {
        matches!(self.depth, 1 | 2) && self.objects[self.depth - 1]
    }

    fn read_key(&mut self, part: &[u8]) {
        if self.place == Place::Key {
            let key = &mut self.keys[self.depth - 1];
            // One byte more than can be told apart, so that a longer key is not taken for its beginning.
            let room = (LONGEST_KEY + 1).saturating_sub(key.len());
            key.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    /// A string or an object begins: it is kept if it is wanted.
    fn start_keeping(&mut self) {
        if self.keeping.is_none() && !self.key_is_due && self.in_shallow_object() {
            let (parent, key) = self.path(self.depth);
            if (self.wanted)(parent, key) {
                self.keeping = Some(self.depth);
                self.kept.clear();
            }
        }
    }

    fn path(&self, depth: usize) -> (&[u8], &[u8]) {
        if depth == 1 { (&[], &self.keys[0]) } else { (&self.keys[0], &self.keys[1]) }
    }

    fn keep(&mut self, part: &[u8]) {
        if self.kept.len() + part.len() > LONGEST_VALUE {
            self.keeping = None;
        } else {
            self.kept.extend_from_slice(part);
        }
    }

    fn give(&mut self, found: &mut dyn FnMut(&[u8], &[u8])) {
        if let Some(depth) = self.keeping.take() {
            let (_, key) = self.path(depth);
            found(key, &self.kept);
        }
    }
}

/// The distance to the next quote or bracket, or to the end. Arrays of numbers (embeddings) are long and hold neither.
fn to_structure(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    // No branch inside of a block, so that it vectorises.
    let plain = |block: &&[u8]| !block.iter().fold(false, |any, &byte| any | may_be_structure(byte));
    let passed = bytes.chunks_exact(BLOCK).take_while(plain).count() * BLOCK;
    let rest = &bytes[passed..];
    passed + rest.iter().position(|&byte| may_be_structure(byte)).unwrap_or(rest.len())
}

/// True for quotes and all four brackets, which equal 0x7F under this mask, as few other bytes do.
fn may_be_structure(byte: u8) -> bool {
    (byte | 0x26 == 0x7F) | (byte == b'"')
}
