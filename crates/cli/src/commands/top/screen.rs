//! The terminal: its own screen, keys as they are pressed, and everything as it was when it ends.
//!
//! What is shown is a table that is drawn anew, so termios and five escape sequences are all that is needed of a terminal
//! library.

use std::io::{self, Read, Write, stdin, stdout};
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::USUAL_WIDTH;

/// Another screen, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// From the top; then, for each line, what is right of it; then all below.
const HOME: &str = "\x1b[H";
const CLEAR_TO_END_OF_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;

/// The screen while it is ours.
pub(super) struct Screen {
    before: Termios,
}

/// What the user did meanwhile.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// Nothing that ends it.
    Nothing,
    /// q, ctrl-c or ctrl-d; or the terminal is gone.
    Quit,
}

impl Screen {
    /// Takes the screen.
    pub(super) fn take() -> io::Result<Screen> {
        let before = tcgetattr(stdin())?;
        let screen = Screen { before };
        write(ENTER)?;
        Ok(screen)
    }

    /// How many columns there are.
    pub(super) fn width(&self) -> usize {
        size().map_or(USUAL_WIDTH, |(width, _)| width)
    }

    /// Shows the text from its beginning, as much of it as fits.
    pub(super) fn show(&mut self, text: &str) -> io::Result<()> {
        let height = size().map_or(usize::MAX, |(_, height)| height);
        let lines: Vec<String> =
            text.lines().take(height).map(|line| format!("{line}{CLEAR_TO_END_OF_LINE}")).collect();
        write(&format!("{HOME}{}{CLEAR_BELOW}", lines.join("\r\n")))
    }

    /// Waits so long, or until a key that ends it is pressed.
    pub(super) fn wait(&mut self, time: Duration) -> io::Result<Pressed> {
        let mut raw = self.before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        // Tenths of a second; the range of `--every` fits.
        raw.special_codes[SpecialCodeIndex::VTIME] = u8::try_from(time.as_millis() / 100).unwrap_or(u8::MAX);
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        let mut key = [0];
        match stdin().read(&mut key)? {
            0 => Ok(Pressed::Nothing),
            _ if matches!(key[0], b'q' | b'Q' | CTRL_C | CTRL_D) => Ok(Pressed::Quit),
            _ => Ok(Pressed::Nothing),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing more can be done for a terminal that refuses.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
        let _ = write(LEAVE);
    }
}

fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

fn write(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
