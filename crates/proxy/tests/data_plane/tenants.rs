//! Keys of different tenants: prefixes placed apart, and caches of engines kept apart.

use crate::client::post;
use crate::identity::keys;
use crate::origin::{Origin, json};
use crate::router::Router;

const PLAIN: &str = r#"{ "model":"m", "messages":[{"role":"user","content":"policy"}],"temperature":1e-1 }"#;

/// A keys file for `sk-1` and `sk-2` of the tenant `acme` and `sk-3` of no tenant by name.
fn lines() -> String {
    use sha2::{Digest, Sha256};
    let hash = |key: &str| Sha256::digest(key).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!(
        "alice sha256:{} tenant=acme\nbob sha256:{} tenant=acme\ncarol sha256:{}\n",
        hash("sk-1"),
        hash("sk-2"),
        hash("sk-3")
    )
}

fn of(key: &str, body: &str) -> String {
    post("/v1/chat/completions", body).replacen("host: router", &format!("host: router\r\nx-api-key: {key}"), 1)
}

#[tokio::test]
async fn tenants_have_homes_of_their_own() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let (_file, top) = keys(&lines());
    let router = Router::before(&[&origin], &top);
    let mut placed = Vec::new();
    for key in ["sk-1", "sk-2", "sk-3"] {
        placed.push(router.ask(of(key, PLAIN)).await.header("x-isotherm-key").unwrap().to_owned());
    }
    assert_eq!(placed[0], placed[1], "two keys of one tenant");
    assert_ne!(placed[0], placed[2]);
    assert!(origin.seen().iter().all(|seen| seen.body == PLAIN.as_bytes()));
}

#[tokio::test]
async fn a_tenants_salt_goes_with_its_requests_without_touching_other_bytes() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let (_file, top) = keys(&lines());
    let router = Router::before(&[&origin], &format!("{top}inject_cache_salt: true\n"));
    let own = PLAIN.replacen('{', r#"{"cache_salt":"mine","#, 1);
    for (key, body) in [("sk-1", PLAIN), ("sk-2", PLAIN), ("sk-3", PLAIN), ("sk-1", &own)] {
        assert_eq!(router.ask(of(key, body)).await.status, 200);
    }
    let mut salts = Vec::new();
    for seen in origin.seen() {
        let body = String::from_utf8(seen.body.clone()).unwrap();
        let rest = body.strip_prefix(r#"{"cache_salt":""#).unwrap();
        let (salt, rest) = rest.split_once('"').unwrap();
        assert_eq!(format!("{{{}", rest.strip_prefix(',').unwrap()), PLAIN);
        salts.push(salt.to_owned());
    }
    assert_eq!(salts[0], salts[1]);
    assert!(salts[0] != salts[2] && salts[0] != salts[3] && !salts.contains(&"mine".to_owned()));
}

#[tokio::test]
async fn without_keys_there_is_no_tenant_to_salt_for() {
    let origin = Origin::answering(&json(200, "{}")).await;
    let router = Router::before(&[&origin], "inject_cache_salt: true\n");
    assert_eq!(router.ask(of("sk-1", PLAIN)).await.status, 200);
    assert_eq!(origin.seen()[0].body, PLAIN.as_bytes());
}
