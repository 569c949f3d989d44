//! Tests of keys files.

use super::*;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn parse(text: &str) -> Result<KeyRing, Vec<String>> {
    let mut problems = Problems::default();
    let ring = KeyRing::parse(Path::new("keys"), text, &mut problems);
    match problems.into_result() {
        Ok(()) => Ok(ring.expect("a ring or a problem")),
        Err(error) => {
            assert_eq!(ring, None);
            Err(error.problems().iter().map(ToString::to_string).collect())
        }
    }
}

#[test]
fn a_key_that_was_made_is_let_in_under_its_name() {
    let [alice, bob, spare] =
        [("alice", 1), ("bob", 2), ("alice", 3)].map(|(name, byte)| NewKey::from_random(name, [byte; 32]).unwrap());
    let ring = parse(&format!("# team\n\n{}\n  {}  \n{}\r\n", alice.line(), bob.line(), spare.line())).unwrap();
    assert_eq!((ring.len(), ring.holds_secrets()), (3, false));
    for (key, name) in [(&alice, "alice"), (&bob, "bob"), (&spare, "alice")] {
        assert_eq!(ring.authenticate(key.text().as_bytes()).unwrap().name().as_str(), name);
    }
    for stranger in ["", "sk-isotherm-", &alice.text().to_uppercase(), &format!("{} ", alice.text()), alice.line()] {
        assert_eq!(ring.authenticate(stranger.as_bytes()), None, "{stranger}");
    }
}

#[test]
fn the_form_of_a_key_does_not_change_between_releases() {
    let key = NewKey::from_random("alice", [0xab; 32]).unwrap();
    assert_eq!(key.text(), format!("sk-isotherm-{}", "ab".repeat(32)));
    assert_eq!(key.line(), "alice sha256:da149e904e890c443f00dd7d9775690a4b37e3407f40a7c1e56ab9409ab44863");
}

#[test]
fn a_key_to_sign_with_is_found_by_its_id() {
    let random: [u8; 46] = std::array::from_fn(|index| (index * 37) as u8);
    let key = NewSigningKey::from_random("alice", random).unwrap();
    assert_eq!((key.access_key().len(), key.secret().len()), (20, 40));
    let ring = parse(&format!("{}\nbob aws:AKIDEXAMPLE:{SECRET}\n", key.line())).unwrap();
    assert_eq!((ring.len(), ring.holds_secrets()), (2, true));
    let found = ring.signing_key(key.access_key()).unwrap();
    assert_eq!((found.expose_secret(), found.holder().name().as_str()), (key.secret(), "alice"));
    assert_eq!(ring.signing_key("AKIDEXAMPLE").unwrap().expose_secret(), SECRET);
    assert_eq!(ring.signing_key("AKID"), None);
    assert_eq!(ring.authenticate(SECRET.as_bytes()), None, "a secret is no opaque key");
}

#[test]
fn what_a_holder_may_do_stands_behind_the_key() {
    let hash = "0".repeat(64);
    let text = format!(
        "alice aws:AKIDEXAMPLE:{SECRET} account=000000000042  endpoints=chat,Code tenant=acme\nbob sha256:{hash} tenant=x"
    );
    let ring = parse(&text).unwrap();
    let alice = ring.signing_key("AKIDEXAMPLE").unwrap().holder();
    assert_eq!((alice.tenant(), alice.account().unwrap().as_str()), ("acme", "000000000042"));
    assert!(alice.may_call("chat") && alice.may_call("code") && !alice.may_call("chat2") && !alice.may_administer());
    let bob = &ring.opaque[0].0;
    assert_eq!((bob.tenant(), bob.account()), ("x", None));
    assert!(bob.may_call("anything") && bob.may_administer());
    let plain = parse(&format!("carol sha256:{hash}")).unwrap();
    assert_eq!(plain.opaque[0].0.tenant(), "carol");
}

#[test]
fn a_key_is_over_when_its_line_says_so() {
    let hash = "0".repeat(64);
    let ring = parse(&format!(
        "alice aws:AKIDEXAMPLE:{SECRET} expires=1970-01-01T01:00:00+01:00\nbob sha256:{hash} expires=1970-01-01T00:00:10Z"
    ));
    let ring = ring.unwrap();
    let at = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let alice = ring.signing_key("AKIDEXAMPLE").unwrap().holder();
    assert!(!alice.has_expired(at(0)) && alice.has_expired(at(1)));
    assert!(!ring.opaque[0].0.has_expired(at(10)) && ring.opaque[0].0.has_expired(at(11)));
    let lasting = parse(&format!("carol sha256:{hash}")).unwrap();
    assert!(!lasting.opaque[0].0.has_expired(at(u64::from(u32::MAX))));
}

#[test]
fn every_bad_line_is_named_and_never_repeated() {
    let hash = "0".repeat(64);
    let key = format!("aws:AKIDEXAMPLE:{SECRET}");
    let text = format!(
        "alice sha256:{hash}\nsha256:{hash}\nbob sk-isotherm-secret\ncarol sha256:xyz\n dave  sha256:{hash}\nerin\n\
         aws:AKID:secret\nfrank aws:AKID:short\ngrace aws:A-B:{SECRET}\nheidi {key}\nivan {key}\n"
    );
    let no_key = "no key after the name; allowed: `name sha256:HEX` or `name aws:ACCESS_KEY_ID:SECRET`, never an opaque \
                  key itself";
    let bad_pair = "after `aws:` come the access key's id (3 to 128 letters and digits), a colon and the secret (16 to 128 \
                    visible ASCII characters)";
    assert_eq!(
        parse(&text).unwrap_err(),
        [
            "keys:2:1: a name is missing; allowed: `name sha256:HEX`, never the key itself".to_owned(),
            format!("keys:3:5: {no_key}"),
            "keys:4:7: after `sha256:` come 64 hexadecimal digits and nothing else".to_owned(),
            "keys:5:1: the same key as in line 1".to_owned(),
            format!("keys:6:5: {no_key}"),
            "keys:7:1: a name is missing; allowed: `name sha256:HEX`, never the key itself".to_owned(),
            format!("keys:8:7: {bad_pair}"),
            format!("keys:9:7: {bad_pair}"),
            "keys:11:1: the same key as in line 10".to_owned(),
        ]
    );
}

#[test]
fn bad_options_are_named_with_what_is_allowed() {
    let hash = "0".repeat(64);
    let known = "allowed: tenant=NAME, endpoints=NAME,NAME, account=TWELVE_DIGITS, expires=TIME";
    for (options, column, message) in [
        ("x", 0, format!("no option; {known}")),
        ("tenants=a", 0, format!("\"tenants\" is no option; {known}")),
        ("tenant=", 0, "a tenant is 1 to 128 characters, none of them a control character".to_owned()),
        (
            "tenant=a endpoints=a,,b",
            9,
            "endpoints: \"\" is no name; allowed: 1 to 63 letters, digits and hyphens, a hyphen neither first nor last"
                .to_owned(),
        ),
        ("account=1", 0, "account: \"1\" is no account; allowed: twelve digits, such as 123456789012".to_owned()),
        (
            "expires=2027-01-31",
            0,
            "expires: \"2027-01-31\" is no time; allowed: one with its offset, such as 2027-01-31T12:00:00Z".to_owned(),
        ),
        ("tenant=a tenant=b", 9, "tenant is given a second time".to_owned()),
    ] {
        let problems = parse(&format!("a sha256:{hash} {options}")).unwrap_err();
        assert_eq!(problems, [format!("keys:1:{}: {message}", 75 + column)]);
    }
}

#[test]
fn a_file_without_keys_is_refused() {
    assert_eq!(
        parse("# none yet\n\n").unwrap_err(),
        [
            "keys: holds no key; allowed: one a line, as `name sha256:HEX` (`isotherm config key` makes one), or as `name \
          aws:ACCESS_KEY_ID:SECRET`"
        ]
    );
}

#[test]
fn names_that_the_file_cannot_hold_make_no_key() {
    for name in ["", "a b", "#a", "sha256:a", "aws:a", "sk-isotherm-a", "a\nb", &"a".repeat(129)] {
        assert!(NewKey::from_random(name, [0; 32]).is_err(), "{name:?}");
        assert!(NewSigningKey::from_random(name, [0; 46]).is_err(), "{name:?}");
    }
}

#[test]
fn debug_output_tells_no_key() {
    let key = NewKey::from_random("alice", [7; 32]).unwrap();
    let signing = NewSigningKey::from_random("bob", [7; 46]).unwrap();
    let ring = parse(&format!("{}\n{}", key.line(), signing.line())).unwrap();
    assert_eq!(format!("{ring:?}"), "KeyRing(2 keys)");
    assert!(!format!("{key:?}").contains(key.text()));
    let found = ring.signing_key(signing.access_key()).unwrap();
    assert!(!format!("{signing:?} {found:?}").contains(signing.secret()));
}
