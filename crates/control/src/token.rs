//! The admin token: who holds it may change the fleet.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq;

/// The secret that commands send to the admin plane as a bearer token.
#[derive(Clone)]
pub struct AdminToken(String);

impl std::fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

/// Why there is no admin token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file can't be read or written.
    #[error("admin token {}: {source}", path.display())]
    File {
        /// The token's file, or its folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds no token.
    #[error("admin token {}: the file is empty; it must hold one line, the token", path.display())]
    Empty {
        /// The token's file.
        path: PathBuf,
    },
    /// Others could have planted or read it.
    #[error("admin token {}: the folder belongs to another user or is open to others; remove it or set XDG_RUNTIME_DIR", path.display())]
    Shared {
        /// The token's folder.
        path: PathBuf,
    },
    /// The system has no randomness to give.
    #[error("admin token: no random numbers from the system: {0}")]
    Random(String),
}

impl AdminToken {
    /// Reads the token from a file, its first line.
    pub fn read(path: &Path) -> Result<AdminToken, TokenError> {
        let text = fs::read_to_string(path).map_err(|source| TokenError::File { path: path.into(), source })?;
        match text.lines().next().map(str::trim) {
            Some(token) if !token.is_empty() => Ok(AdminToken(token.to_owned())),
            _ => Err(TokenError::Empty { path: path.into() }),
        }
    }

    /// Makes a token for the admin plane on `port` and leaves it where the commands of the same user find it.
    pub fn make(port: u16) -> Result<(AdminToken, PathBuf), TokenError> {
        let mut bytes = [0u8; 24];
        getrandom::fill(&mut bytes).map_err(|error| TokenError::Random(error.to_string()))?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let path = AdminToken::path(port);
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| TokenError::File { path: folder.into(), source })?;
        refuse_shared(folder)?;
        write_private(&path, &token).map_err(|source| TokenError::File { path: path.clone(), source })?;
        Ok((AdminToken(token), path))
    }

    /// Where the token of the admin plane on `port` lies: in the user's runtime directory.
    pub fn path(port: u16) -> PathBuf {
        let base = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let folder = base.map_or_else(fallback_folder, |base| base.join("isotherm"));
        folder.join(format!("admin-{port}.token"))
    }

    /// Whether `offered` is the token; takes the same time wherever they differ.
    pub fn admits(&self, offered: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(offered).into()
    }

    /// The token's text, to be sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Without a runtime directory of the session: a folder of the user's own beside other temporary files.
fn fallback_folder() -> PathBuf {
    let user = fs::metadata("/proc/self").map_or(0, |process| process.uid());
    std::env::temp_dir().join(format!("isotherm-{user}"))
}

/// A folder in a place where anyone may write can have been made by anyone.
fn refuse_shared(folder: &Path) -> Result<(), TokenError> {
    let file = |source| TokenError::File { path: folder.into(), source };
    let metadata = fs::symlink_metadata(folder).map_err(file)?;
    let me = fs::metadata("/proc/self").map_err(file)?.uid();
    let private = metadata.is_dir() && metadata.uid() == me && metadata.permissions().mode() & 0o077 == 0;
    if private { Ok(()) } else { Err(TokenError::Shared { path: folder.into() }) }
}

fn write_private(path: &Path, token: &str) -> io::Result<()> {
    // A new file each time: the mode of one that is there already would stay as it is.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_from_the_first_line_and_an_empty_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "s3cret\n").unwrap();
        let token = AdminToken::read(&path).unwrap();
        assert!(token.admits(b"s3cret") && !token.admits(b"s3creT") && !token.admits(b""));
        assert!(!format!("{token:?}").contains("s3cret"));
        fs::write(&path, "\n").unwrap();
        assert!(AdminToken::read(&path).unwrap_err().to_string().contains("must hold one line"));
    }

    #[test]
    fn a_written_token_is_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "old, readable by all").unwrap();
        write_private(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(refuse_shared(&open), Err(TokenError::Shared { .. })));
        fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(refuse_shared(&open).is_ok());
    }
}
