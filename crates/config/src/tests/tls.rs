//! Tests of certificates in the configuration: which files are read, what is refused, what is warned of.

use std::time::{Duration, SystemTime};

use super::mistakes::{ENDPOINT, element_refused, instance_refused};
use super::*;
use crate::{InstanceEntry, InstanceSource};

fn instances(text: &str) -> Vec<InstanceEntry> {
    let mut config = load(text).unwrap();
    config.endpoints.remove(0).variants.remove(0).instances
}

fn warnings(top: &str, instance: &str) -> Vec<String> {
    let text = format!("{top}\nendpoints: [{{ name: e, variants: [{{ name: v, instances: [{instance}] }}] }}]");
    let files = Files::with(&text);
    let config = files.load(&environment(&[("ENGINE_KEY", "sk-engine")]), &Overrides::default()).unwrap();
    config.warnings(SystemTime::now())
}

#[test]
fn every_certificate_is_read_and_watched() {
    let files = Files::with(EVERY_KEY);
    let config = files.load(&environment(&[("ENGINE_KEY", "sk-engine")]), &Overrides::default()).unwrap();
    let tls = config.tls.as_ref().unwrap();
    assert!(tls.asks_for_certificates());
    let names: Vec<_> = config.files().into_iter().filter_map(|file| Some(file.file_name()?.to_owned())).collect();
    assert_eq!(names, ["cert.pem", "key.pem", "cert.pem", "both.pem", "cert.pem", "cert.pem", "key.pem"]);
    assert_eq!(config.admin.hosts[0].as_str(), "router.internal");
    let again = files.load(&environment(&[("ENGINE_KEY", "sk-engine")]), &Overrides::default()).unwrap();
    assert_eq!(config, again);
    files.certify();
    let changed = files.load(&environment(&[("ENGINE_KEY", "sk-engine")]), &Overrides::default()).unwrap();
    assert_ne!(config.tls, changed.tls);
}

#[test]
fn what_is_wrong_with_certificates_is_told_where_they_are_named() {
    element_refused(
        "tls: { cert: none.pem }",
        "1:14: the certificate none.pem cannot be read: No such file or directory (os error 2)",
    );
    element_refused(
        "tls: { cert: cert.pem }",
        "1:14: cert.pem holds no private key in PEM (PKCS #8, PKCS #1 or SEC 1)",
    );
    element_refused(
        "tls:\n  cert: cert.pem\n  key: other.pem",
        "3:8: the private key of other.pem is not the key of the certificate in cert.pem",
    );
    element_refused(
        "tls: { cert: both.pem, client_ca: key.pem }",
        "1:35: key.pem holds no authority's certificate in PEM",
    );
    element_refused("tls: { key: key.pem }", "1:6: tls: `cert` is missing");
    element_refused("instances_tls: { key: key.pem }", "1:23: `key` goes with `cert`");
    element_refused("instances_tls: { server_name: 'a b' }", "1:31: \"a b\" is neither a host's name nor an address");
    element_refused(
        "instances_tls: { ca: cert.pem, verify: false }",
        "1:22: `ca` says whose certificates are believed, `verify: false` that all are: give one",
    );
    element_refused(
        "admin: { hosts: [a/b] }",
        "1:18: admin.hosts[0]: must have a host: an IPv4 address, an IPv6 address \
         in brackets, or a name of letters, digits, - and .",
    );
    instance_refused("{ url: 'http://a', tls: { verify: false } }", "31: `tls` goes with an https:// URL");
    let text = "endpoints: [{ name: e, variants: [{ name: v, instances: [{ dns: 'srv+https://_a._tcp.b' }] }] }]";
    let line = "isotherm.yaml: srv+https://_a._tcp.b: needs `tls: { server_name: NAME }`, the name in its instances' \
                certificates";
    assert_eq!(load(text).unwrap_err(), [line]);
}

#[test]
fn instances_share_what_is_said_for_all_and_may_say_their_own() {
    let entries = instances(
        "instances_tls: { ca: cert.pem }\nendpoints: [{ name: e, variants: [{ name: v, instances: [{ url: 'https://a' }, \
         { url: 'https://b', tls: { verify: false } }, { dns: 'https://c' }, { url: 'http://d' }] }] }]",
    );
    let serials: Vec<_> = entries.iter().map(|entry| entry.tls.as_ref().map(|tls| tls.serial())).collect();
    assert!(serials[0].is_some() && serials[1].is_some() && serials[0] != serials[1]);
    assert_eq!((serials[2], serials[3]), (serials[0], None));
    let InstanceSource::Url { id, .. } = &entries[0].source else { panic!("a URL") };
    assert_eq!(id.as_str(), "https://a");
}

#[test]
fn who_sends_secrets_in_the_clear_is_told() {
    let keys = "auth: { keys_file: keys }";
    let local = "{ url: 'http://127.0.0.1:1', api_key_env: ENGINE_KEY }";
    assert_eq!(warnings(&format!("listen: 127.0.0.1:8080\n{keys}"), local), [""; 0]);
    assert_eq!(warnings("listen: 0.0.0.0:8080\nauth: none", local), [""; 0]);
    assert_eq!(warnings(&format!("listen: 0.0.0.0:8080\n{keys}\ntls: {{ cert: both.pem }}"), local), [""; 0]);
    let told = warnings(&format!("listen: 0.0.0.0:8080\nadmin: {{ listen: '0.0.0.0:1' }}\n{keys}"), local);
    assert!(told[0].starts_with("clients' keys travel in the clear to 0.0.0.0:8080: set `tls"), "{told:?}");
    assert!(told[1].starts_with("the admin token travels in the clear to 0.0.0.0:1"), "{told:?}");
    let told = warnings("", "{ url: 'http://10.0.0.1', api_key_env: ENGINE_KEY }");
    assert!(told[0].starts_with("the engine's key travels in the clear to http://10.0.0.1;"), "{told:?}");
    assert_eq!(warnings("", "{ url: 'https://10.0.0.1', api_key_env: ENGINE_KEY, tls: { ca: cert.pem } }"), [""; 0]);
    let told = warnings("instances_tls: { verify: false }", "{ url: 'https://10.0.0.1' }");
    assert!(told[0].starts_with("`verify: false`"), "{told:?}");
}

#[test]
fn a_certificate_that_ends_is_told_of() {
    let config = load(&format!("tls: {{ cert: both.pem }}\n{ENDPOINT}")).unwrap();
    let until = config.tls.as_ref().unwrap().validity().unwrap().until;
    let told = config.warnings(until + Duration::from_secs(2 * 86_400));
    assert!(told[0].ends_with("both.pem has expired 2 days ago"), "{told:?}");
}
