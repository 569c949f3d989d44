//! Passing over one value of any depth, checking its structure on the way.

use super::{Cursor, Malformed};

impl Cursor<'_> {
    /// Passes over one value. Containers are kept on a stack of one bit each, so depth costs a bit and no recursion.
    ///
    /// Once it has [passed many](Cursor::passed_many), it looks for the end of a container without judging what is in it.
    pub(crate) fn skip_value(&mut self) -> Result<(), Malformed> {
        let mut open = Nesting::default();
        loop {
            let entered = self.value_begins(&mut open)?;
            self.values = self.values.saturating_add(1);
            if self.passed_many() && open.depth() > 0 {
                return self.leave(open.depth());
            }
            if entered {
                continue;
            }
            while let Some(container) = open.innermost() {
                match (self.peek(), container) {
                    (Some(b','), Container::Array) => {
                        self.at += 1;
                        break;
                    }
                    (Some(b','), Container::Object) => {
                        self.at += 1;
                        self.key_and_colon()?;
                        break;
                    }
                    (Some(b']'), Container::Array) | (Some(b'}'), Container::Object) => {
                        self.at += 1;
                        open.close();
                    }
                    (_, Container::Array) => return Err(self.malformed("`,` or `]`")),
                    (_, Container::Object) => return Err(self.malformed("`,` or `}`")),
                }
            }
            if open.innermost().is_none() {
                return Ok(());
            }
        }
    }

    /// Passes over a scalar or an empty container, or enters one. True when a first element's value comes next.
    #[inline]
    fn value_begins(&mut self, open: &mut Nesting) -> Result<bool, Malformed> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| false),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| false),
            Some(b'{') => {
                self.at += 1;
                if self.pass(b'}') {
                    return Ok(false);
                }
                open.open(Container::Object);
                self.key_and_colon().map(|()| true)
            }
            Some(b'[') => {
                self.at += 1;
                if self.pass(b']') {
                    return Ok(false);
                }
                open.open(Container::Array);
                Ok(true)
            }
            Some(b't') => self.word(b"true").map(|()| false),
            Some(b'f') => self.word(b"false").map(|()| false),
            Some(b'n') => self.word(b"null").map(|()| false),
            Some(b'N') => self.word(b"NaN").map(|()| false),
            Some(b'I') => self.word(b"Infinity").map(|()| false),
            _ => Err(self.malformed("a value")),
        }
    }

    #[inline]
    fn key_and_colon(&mut self) -> Result<(), Malformed> {
        if self.peek() != Some(b'"') {
            return Err(self.malformed("a key in double quotes"));
        }
        self.string()?;
        self.colon()
    }

    /// The colon behind a key.
    #[inline]
    pub(super) fn colon(&mut self) -> Result<(), Malformed> {
        if self.pass(b':') { Ok(()) } else { Err(self.malformed("`:` after a key")) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

/// The containers that are open, one bit each. The first 64 levels need no memory of their own.
#[derive(Debug, Default)]
struct Nesting {
    /// The innermost levels, the very innermost in the lowest bit; 1 is an object.
    innermost: u64,
    /// How many levels `innermost` holds.
    held: u32,
    /// Full words of the levels further out.
    outer: Vec<u64>,
}

impl Nesting {
    #[inline]
    fn open(&mut self, container: Container) {
        if self.held == u64::BITS {
            self.outer.push(self.innermost);
            self.held = 0;
        }
        self.innermost = self.innermost << 1 | u64::from(container == Container::Object);
        self.held += 1;
    }

    #[inline]
    fn innermost(&self) -> Option<Container> {
        match (self.held, self.innermost & 1) {
            (0, _) => None,
            (_, 0) => Some(Container::Array),
            _ => Some(Container::Object),
        }
    }

    fn depth(&self) -> usize {
        self.outer.len() * u64::BITS as usize + self.held as usize
    }

    #[inline]
    fn close(&mut self) {
        self.innermost >>= 1;
        self.held -= 1;
        if self.held == 0
            && let Some(word) = self.outer.pop()
        {
            self.innermost = word;
            self.held = u64::BITS;
        }
    }
}
