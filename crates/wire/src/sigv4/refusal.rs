//! Why a signed request is not let in, in AWS's words.

/// Why a request's signature or token does not prove who sends it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Neither signature nor token.
    #[error("Missing Authentication Token")]
    MissingToken,
    /// It claims to be signed, and leaves out how.
    #[error("{0}")]
    Incomplete(String),
    /// Nobody has this access key.
    #[error("The security token included in the request is invalid.")]
    UnknownKey,
    /// The holder of the key did not sign this request.
    #[error(
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access \
         Key and signing method. Consult the service documentation for details."
    )]
    Mismatch,
    /// Signed too long ago.
    #[error("Signature expired: {signed_at} is now earlier than {earliest} ({now} - 15 min.)")]
    Expired {
        /// When it was signed.
        signed_at: String,
        /// When it could have been signed at the earliest.
        earliest: String,
        /// The router's time.
        now: String,
    },
    /// A presigned request after its time.
    #[error("Signature expired: the presigned request was good until {at}, and it is {now}")]
    PresignedExpired {
        /// When it expired.
        at: String,
        /// The router's time.
        now: String,
    },
    /// Signed in the future.
    #[error("Signature not yet current: {signed_at} is still later than {now} + 15 min.")]
    NotYet {
        /// When it says that it was signed.
        signed_at: String,
        /// The router's time.
        now: String,
    },
    /// Its scope is not of the day of its signing.
    #[error(
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{scope}' != \
         '{day}', from '{signed_at}'."
    )]
    WrongDay {
        /// The day of the scope.
        scope: String,
        /// The day of the signing.
        day: String,
        /// When it was signed.
        signed_at: String,
    },
    /// Signed for a region that is not served here.
    #[error("Credential should be scoped to a valid region, not '{0}'. ")]
    WrongRegion(String),
    /// Signed for another service than this one.
    #[error("Credential should be scoped to correct service: '{0}'. ")]
    WrongService(String),
    /// A header that is part of what is asked was left out of the signature.
    #[error("'{0}' must be a 'SignedHeader' in the AWS Authorization.")]
    Unsigned(String),
    /// The body is not the one that was signed, or was not signed whole.
    #[error("{0}")]
    Payload(&'static str),
    /// A bearer token that is none.
    #[error("The bearer token included in the request is invalid.")]
    BadToken,
    /// A bearer token, or the key itself, after its time.
    #[error("The security token included in the request is expired")]
    TokenExpired,
}

impl Refusal {
    /// The error's name, by which SDKs choose the exception.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::MissingToken => "MissingAuthenticationTokenException",
            Refusal::Incomplete(_) => "IncompleteSignatureException",
            Refusal::UnknownKey | Refusal::BadToken => "UnrecognizedClientException",
            Refusal::TokenExpired => "ExpiredTokenException",
            Refusal::Mismatch
            | Refusal::Expired { .. }
            | Refusal::PresignedExpired { .. }
            | Refusal::NotYet { .. }
            | Refusal::WrongDay { .. }
            | Refusal::WrongRegion(_)
            | Refusal::WrongService(_)
            | Refusal::Unsigned(_)
            | Refusal::Payload(_) => "InvalidSignatureException",
        }
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Refusal::Incomplete(_) => 400,
            _ => 403,
        }
    }
}
