//! What the parts of a configuration share while they are put together.

use std::path::Path;

use isotherm_tls::ClientTls;

use crate::environment::Environment;
use crate::problem::{Origin, Place, Problems};

/// The file that is read, the environment that it may refer to, and what was found wrong so far.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) path: Option<&'a Path>,
    pub(crate) environment: &'a Environment,
    pub(crate) problems: Problems,
    /// TLS to instances that say nothing of their own.
    pub(crate) instances_tls: Option<ClientTls>,
}

impl<'a> Context<'a> {
    /// The origin of what stands at this place of the file.
    pub(crate) fn at(&self, place: Place) -> Origin {
        match self.path {
            Some(path) => Origin::File { path: path.to_owned(), place: Some(place) },
            None => Origin::Nowhere,
        }
    }

    /// The origin of what is missing in the file as a whole.
    pub(crate) fn whole(&self) -> Origin {
        match self.path {
            Some(path) => Origin::File { path: path.to_owned(), place: None },
            None => Origin::Nowhere,
        }
    }

    /// Notes what is wrong at a place of the file.
    pub(crate) fn refuse(&mut self, place: Place, message: impl Into<String>) {
        let origin = self.at(place);
        self.problems.add(origin, message);
    }

    /// Relative paths in the file count from here.
    pub(crate) fn directory(&self) -> &'a Path {
        self.path.and_then(Path::parent).unwrap_or(Path::new(""))
    }
}
