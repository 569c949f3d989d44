//! Signs requests and makes bearer tokens as AWS's clients do, apart from the code under test.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

/// Who signs, for what and when.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    pub(crate) access_key: &'static str,
    pub(crate) secret: &'static str,
    pub(crate) region: &'static str,
    pub(crate) service: &'static str,
    /// Seconds from now.
    pub(crate) at: i64,
}

/// The key of AWS's own examples.
pub(crate) const ALICE: Signer = Signer {
    access_key: "AKIDEXAMPLE",
    secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    region: "eu-west-1",
    service: "sagemaker",
    at: 0,
};

impl Signer {
    /// A `POST` whose head is signed for this body; further headers are signed, too, and come in the order of their names.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        format!("{}{body}", self.head(path, headers, body))
    }

    /// The head alone, with the empty line behind it.
    pub(crate) fn head(&self, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let time = self.time();
        let mut signed = vec![("host", "router"), ("x-amz-date", time.as_str())];
        signed.extend_from_slice(headers);
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines = |separator: &str, end: &str| {
            signed.iter().map(|(name, value)| format!("{name}:{separator}{value}{end}")).collect::<String>()
        };
        let canonical = format!("POST\n{path}\n\n{}\n{names}\n{}", lines("", "\n"), hash(body.as_bytes()));
        format!(
            "POST {path} HTTP/1.1\r\n{}authorization: AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={names}, \
             Signature={}\r\ncontent-length: {}\r\n\r\n",
            lines(" ", "\r\n"),
            self.access_key,
            self.scope(),
            self.signature(&canonical),
            body.len(),
        )
    }

    /// A token that is good for so many seconds.
    pub(crate) fn token(&self, expires: u32) -> String {
        let credential = format!("{}/{}", self.access_key, self.scope()).replace('/', "%2F");
        let query = format!(
            "Action=CallWithBearerToken&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={}\
             &X-Amz-Expires={expires}&X-Amz-SignedHeaders=host",
            self.time()
        );
        let canonical = format!("POST\n/\n{query}\nhost:sagemaker.amazonaws.com\n\nhost\n{}", hash(b""));
        let url = format!("sagemaker.amazonaws.com/?{query}&X-Amz-Signature={}&Version=1", self.signature(&canonical));
        format!("sagemaker-api-key-{}", STANDARD.encode(url))
    }

    fn time(&self) -> String {
        (Timestamp::now() + SignedDuration::from_secs(self.at)).strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    fn scope(&self) -> String {
        format!("{}/{}/{}/aws4_request", &self.time()[..8], self.region, self.service)
    }

    fn signature(&self, canonical: &str) -> String {
        let (time, scope) = (self.time(), self.scope());
        let key = scope.split('/').fold(format!("AWS4{}", self.secret).into_bytes(), |key, part| mac(&key, part));
        hexadecimal(&mac(&key, &format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hash(canonical.as_bytes()))))
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hash(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
