//! Places of the kind `s3://BUCKET/KEY`, which are files below one directory and never outside of it.

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs;
use tokio::io::AsyncWriteExt;

/// The directory that holds the buckets.
#[derive(Debug, Clone)]
pub(super) struct Buckets {
    root: PathBuf,
}

/// A place: a bucket and a key that can be a file's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    bucket: String,
    key: String,
}

/// A bucket or key that can be no file's path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no place: a bucket is letters, digits, points, hyphens and underscores and does not begin with a point; \
     the parts of a key, between slashes, are not empty, not . or .., at most 255 bytes, and without backslashes and \
     control characters"
)]
pub(super) struct BadPlace(String);

impl Place {
    /// The place of that bucket and key.
    pub(super) fn new(bucket: &str, key: &str) -> Result<Place, BadPlace> {
        let in_bucket = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let bucket_fits =
            (1..=255).contains(&bucket.len()) && !bucket.starts_with('.') && bucket.bytes().all(in_bucket);
        if bucket_fits && key.len() <= 1_024 && key.split('/').all(is_part) {
            Ok(Place { bucket: bucket.to_owned(), key: key.to_owned() })
        } else {
            Err(BadPlace(format!("s3://{bucket}/{key}")))
        }
    }

    /// The place that an URI names.
    pub(super) fn of(uri: &str) -> Result<Place, BadPlace> {
        let rest = uri.strip_prefix("s3://").ok_or_else(|| BadPlace(uri.to_owned()))?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        Place::new(bucket, key)
    }

    /// A place below an URI, whose slash at the end does not matter.
    pub(super) fn below(uri: &str, parts: &[&str]) -> Result<Place, BadPlace> {
        let parts = parts.iter().map(|part| part.trim_matches('/')).filter(|part| !part.is_empty());
        let whole: Vec<&str> = std::iter::once(uri.trim_end_matches('/')).chain(parts).collect();
        Place::of(&whole.join("/"))
    }

    /// Whether it lies below an URI. Case is not minded, as some file systems do not.
    pub(super) fn is_below(&self, uri: &str) -> bool {
        let (own, above) = (self.uri(), uri.trim_end_matches('/'));
        let rest = own.split_at_checked(above.len()).filter(|(start, _)| start.eq_ignore_ascii_case(above));
        rest.is_some_and(|(_, rest)| rest.starts_with('/'))
    }

    /// As clients name it.
    pub(super) fn uri(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.key)
    }
}

/// Whether it may be the name of a file or a directory.
fn is_part(part: &str) -> bool {
    let sound = |c: char| !c.is_control() && c != '\\';
    (1..=255).contains(&part.len()) && part != "." && part != ".." && part.chars().all(sound)
}

impl Buckets {
    /// The buckets in a directory, which is made when something is first written.
    pub(super) fn in_directory(root: PathBuf) -> Buckets {
        Buckets { root }
    }

    /// The directory.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, place: &Place) -> PathBuf {
        self.root.join(&place.bucket).join(&place.key)
    }

    /// What lies at a place, at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// When nothing can be read there, when it is larger, or when a link leads out of the directory.
    pub(super) async fn read(&self, place: &Place, limit: u64) -> io::Result<Vec<u8>> {
        let path = fs::canonicalize(self.path(place)).await?;
        self.check_within(&path).await?;
        let metadata = fs::metadata(&path).await?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        if metadata.len() > limit {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes")));
        }
        fs::read(&path).await
    }

    /// Begins to write a place.
    ///
    /// # Errors
    ///
    /// When that can't be done, or a link leads out of the directory.
    pub(super) async fn write(&self, place: &Place, random: u64) -> io::Result<Writing> {
        Writing::begin(self.path(place), random, self).await
    }

    /// Refuses a path that does not lie in the directory once all links are followed.
    async fn check_within(&self, path: &Path) -> io::Result<()> {
        let root = fs::canonicalize(&self.root).await?;
        if path.starts_with(root) {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "a link leads out of the directory of the buckets"))
        }
    }
}

/// A file being written beside its place, which shows it only when it is whole.
#[derive(Debug)]
pub(super) struct Writing {
    file: fs::File,
    temporary: PathBuf,
    target: PathBuf,
    is_done: bool,
}

impl Writing {
    /// Begins to write a file of the buckets' directory. Prompts and answers are for the router's user alone, and so are
    /// the directories that are made for them; those that are there already stay as they are.
    pub(super) async fn begin(target: PathBuf, random: u64, buckets: &Buckets) -> io::Result<Writing> {
        let directory = target.parent().unwrap_or(&buckets.root);
        let mut making = fs::DirBuilder::new();
        making.recursive(true).mode(0o700);
        making.create(&buckets.root).await?;
        // Nothing is made, either, where a link leads out.
        let there = directory.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(&buckets.root);
        buckets.check_within(&fs::canonicalize(there).await?).await?;
        making.create(directory).await?;
        let temporary = directory.join(format!(".{random:016x}.part"));
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).await?;
        Ok(Writing { file, temporary, target, is_done: false })
    }

    /// Appends bytes.
    pub(super) async fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await
    }

    /// Shows the file at its place, in place of what may be there; what is shown survives a crash.
    pub(super) async fn finish(mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        fs::rename(&self.temporary, &self.target).await?;
        self.is_done = true;
        // A name lies in its directory, which is kept apart from the file.
        let directory = self.target.parent().unwrap_or(&self.target);
        fs::File::open(directory).await?.sync_all().await
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.is_done {
            // Nobody has seen it; if it can't be removed, it is a stray file with a hidden name.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_paths_below_the_directory_are_places() {
        for (bucket, key) in [("b", "k"), ("my-bucket.x_1", "a/b c/ü.json")] {
            assert!(Place::new(bucket, key).is_ok(), "{bucket}/{key}");
        }
        for (bucket, key) in [
            ("", "k"),
            ("..", "k"),
            (".queue", "k"),
            ("a/b", "k"),
            ("b", ""),
            ("b", ".."),
            ("b", "../../etc/passwd"),
            ("b", "a/../b"),
            ("b", "a//b"),
            ("b", "/etc/passwd"),
            ("b", "a/"),
            ("b", "a\\..\\b"),
            ("b", "a\0b"),
        ] {
            assert!(Place::new(bucket, key).is_err(), "{bucket}/{key}");
        }
    }

    #[test]
    fn places_are_named_as_clients_name_them() {
        let place = Place::below("s3://b/answers/", &["/today/", "", "1.out"]).unwrap();
        assert_eq!(place.uri(), "s3://b/answers/today/1.out");
        assert_eq!(Place::below("s3://b", &["1.out"]).unwrap().uri(), "s3://b/1.out");
        assert!(Place::below("s3://b/answers", &["../..", "1.out"]).is_err());
        assert!(Place::of("https://b/k").is_err());
        assert!(
            place.is_below("s3://b/answers/") && place.is_below("s3://B/ANSWERS/today") && place.is_below("s3://b")
        );
        assert!(
            !place.is_below("s3://b/ans") && !place.is_below("s3://b/answers/today/1.out") && !place.is_below("s3://c")
        );
    }

    #[tokio::test]
    async fn a_file_shows_only_when_it_is_whole() {
        let root = tempfile::tempdir().unwrap();
        let buckets = Buckets::in_directory(root.path().join("made"));
        let place = Place::new("b", "deep/k").unwrap();
        let mut writing = buckets.write(&place, 1).await.unwrap();
        writing.append(b"half").await.unwrap();
        assert!(buckets.read(&place, 100).await.is_err());
        writing.append(b", whole").await.unwrap();
        writing.finish().await.unwrap();
        assert_eq!(buckets.read(&place, 100).await.unwrap(), b"half, whole");
        assert_eq!(buckets.read(&place, 3).await.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        drop(buckets.write(&place, 2).await.unwrap());
        let files = std::fs::read_dir(root.path().join("made/b/deep")).unwrap().count();
        assert_eq!(files, 1, "what was begun and dropped leaves nothing");
    }

    #[tokio::test]
    async fn what_is_made_is_for_the_router_alone_and_what_was_there_stays_as_it_is() {
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let root = tempfile::tempdir().unwrap();
        let bucket = root.path().join("b");
        std::fs::create_dir(&bucket).unwrap();
        std::fs::set_permissions(&bucket, Permissions::from_mode(0o750)).unwrap();
        let buckets = Buckets::in_directory(root.path().to_owned());
        let mut writing = buckets.write(&Place::new("b", "deep/k").unwrap(), 1).await.unwrap();
        writing.append(b"answer").await.unwrap();
        writing.finish().await.unwrap();
        assert_eq!([mode(&bucket), mode(&bucket.join("deep")), mode(&bucket.join("deep/k"))], [0o750, 0o700, 0o600]);
    }

    #[tokio::test]
    async fn no_link_leads_out_of_the_directory() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("b")).unwrap();
        let buckets = Buckets::in_directory(root.path().to_owned());
        let place = Place::new("b", "secret").unwrap();
        assert_eq!(buckets.read(&place, 100).await.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(buckets.write(&place, 1).await.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let deeper = Place::new("b", "made/k").unwrap();
        assert_eq!(buckets.write(&deeper, 1).await.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(!outside.path().join("made").exists(), "not even an empty directory is made there");
    }
}
