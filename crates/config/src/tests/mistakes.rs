//! Tests of what is refused, and in which words.

mod aws;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// An endpoint that is right, to go with whatever is wrong.
pub(super) const ENDPOINT: &str = "endpoints: [{ name: e, variants: [{ name: v, instances: [] }] }]";

/// Checks that a text is refused in exactly these lines.
#[track_caller]
fn refused(text: &str, lines: &[&str]) {
    assert_eq!(load(text).unwrap_err(), lines, "of\n{text}");
}

/// Checks that a top-level element is refused in exactly this line, which begins after the file's name.
#[track_caller]
pub(super) fn element_refused(element: &str, line: &str) {
    refused(&format!("{element}\n{ENDPOINT}\n"), &[&format!("isotherm.yaml:{line}")]);
}

/// Checks that a variant's element is refused in exactly this line, which begins after the variant's path.
#[track_caller]
fn variant_refused(element: &str, line: &str) {
    let text = format!("endpoints:\n- name: e\n  variants:\n  - name: v\n    instances: []\n    {element}\n");
    let (place, message) = line.split_once(' ').unwrap();
    refused(&text, &[&format!("isotherm.yaml:6:{place} endpoints[0].variants[0].{message}")]);
}

/// Checks that an instance is refused in exactly this line, which begins after the instance's path.
#[track_caller]
pub(super) fn instance_refused(instance: &str, line: &str) {
    let text = format!("endpoints:\n- name: e\n  variants:\n  - name: v\n    instances:\n    - {instance}\n");
    let (place, message) = line.split_once(' ').unwrap();
    refused(&text, &[&format!("isotherm.yaml:6:{place} {message}")]);
}

#[test]
fn unknown_keys_are_named_with_what_is_allowed() {
    element_refused(
        "liten: 127.0.0.1:1",
        "1:1: liten: unknown key; did you mean `listen`? Allowed: listen, tls, admin, auth, hash_seed, hash_seed_env, \
         hash_seed_file, expose_decisions, inject_include_usage, inject_cache_salt, allow_paths, access_log, \
         access_log_prompts, diagnostics, timeouts, \
         limits, guards, instances_tls, alerts, otlp, endpoints, aws",
    );
    element_refused(
        "admin: { token: x }",
        "1:10: admin.token: unknown key; did you mean `token_file`? Allowed: listen, token_file, tls, hosts",
    );
    element_refused(
        "auth: { keys_fil: x }",
        "1:9: auth.keys_fil: unknown key; did you mean `keys_file`? Allowed: keys_file",
    );
    element_refused(
        "timeouts:\n  firstByte: 1s",
        "2:3: timeouts.firstByte: unknown key; did you mean `first_byte`? Allowed: connect, first_byte, idle, total, \
         invocation, invocation_stream, client_header, client_body, pool_idle, shutdown_delay, shutdown_grace",
    );
    element_refused(
        "limits: { queue: { max-waiting: 1 } }",
        "1:20: limits.queue.max-waiting: unknown key; did you mean `max_waiting`? Allowed: max_waiting, max_bytes, timeout",
    );
    variant_refused(
        "routing: { prefix_lenght: 1 }",
        "16: routing.prefix_lenght: unknown key; did you mean `prefix_length`? Allowed: strategy, prefix_length, \
         concurrency_threshold, spill, client_breakpoints, canonical_json, rollout",
    );
    instance_refused(
        "{ url: 'http://a', port: 8000 }",
        "26: endpoints[0].variants[0].instances[0].port: unknown key; allowed: url, dns, id, weight, max_in_flight, \
         api_key_env, resolve_interval, tls",
    );
}

#[test]
fn bad_values_are_named_with_what_is_allowed() {
    element_refused("listen: 8080", "1:9: listen: expected an address such as 127.0.0.1:8080, found a whole number");
    element_refused(
        "listen: example.com:8080",
        "1:9: listen: \"example.com:8080\" is no address to listen on; allowed: IP:PORT, such as 127.0.0.1:8080, \
         0.0.0.0:8080 or [::]:8080",
    );
    element_refused("auth: nobody", "1:7: auth: \"nobody\" is not known here; allowed: none, { keys_file: PATH }");
    element_refused("auth: true", "1:7: auth: expected `none` or a mapping with keys_file, found boolean `true`");
    element_refused("hash_seed: -4", "1:12: hash_seed: must not be negative, as -4 is");
    element_refused(
        "hash_seed: 18446744073709551616",
        "1:12: hash_seed: too large; allowed: up to 18446744073709551615",
    );
    element_refused("hash_seed: the-secret", "1:12: hash_seed: expected a whole number, found text");
    element_refused("expose_decisions: yes", "1:19: expose_decisions: expected true or false, found text");
    element_refused("allow_paths: /v1/x", "1:14: allow_paths: expected a list, found text");
    element_refused(
        "allow_paths: [/ok, '/*']",
        "1:20: allow_paths[1]: \"/*\" would let /abort_request through, which administers an engine and never passes",
    );
    element_refused(
        "access_log: stder",
        "1:13: access_log: \"stder\" is no target, did you mean \"stderr\"; allowed: off, stderr, or a file's path \
         with a slash in it, such as ./access.log",
    );
    element_refused(
        "timeouts: { connect: 10 }",
        "1:22: timeouts.connect: expected a duration such as 10s, found a whole number",
    );
    element_refused(
        "timeouts: { idle: 10 sec }",
        "1:19: timeouts.idle: \"10 sec\" is no duration; allowed: a whole number with ms, s, m or h, such as 500ms, \
         10s or 5m",
    );
    element_refused("timeouts: { idle: 0s }", "1:19: timeouts.idle: must be at least 1ms");
    element_refused(
        "limits: { body: 32MB }",
        "1:17: limits.body: \"32MB\" is no size; allowed: a whole number of bytes, or one with KiB, MiB or GiB, such \
         as 64KiB or 32MiB",
    );
    element_refused("limits: { connections: 0 }", "1:24: limits.connections: must be from 1 to 1000000, not 0");
    element_refused(
        "limits: { queue: 5 }",
        "1:18: limits.queue: expected a mapping with the keys max_waiting, max_bytes, timeout, found a whole number",
    );
}

#[test]
fn bad_values_of_a_variant_are_named_with_what_is_allowed() {
    variant_refused("weight: -1", "13: weight: a variant's weight is a number from 0, not -1");
    variant_refused("weight: .inf", "13: weight: a variant's weight is a number from 0, not inf");
    variant_refused(
        "routing: { strategy: cache_aware }",
        "26: routing.strategy: \"cache_aware\" is no strategy; allowed: RANDOM, ROUND_ROBIN, \
         LEAST_OUTSTANDING_REQUESTS, PREFIX_AWARE, ADAPTIVE",
    );
    variant_refused(
        "routing: { prefix_length: 65537 }",
        "31: routing.prefix_length: prefix_length must be from 1 to 65536, not 65537",
    );
    variant_refused(
        "routing: { concurrency_threshold: \"10\" }",
        "39: routing.concurrency_threshold: expected a whole number, found text",
    );
    variant_refused(
        "routing: { spill: least_outstanding }",
        "23: routing.spill: \"least_outstanding\" is not known here; did you mean `least-outstanding`? Allowed: next, \
         least-outstanding",
    );
    variant_refused("routing: { rollout: 101 }", "25: routing.rollout: rollout must be from 0 to 100, not 101");
    variant_refused(
        "health: { path: health }",
        "21: health.path: \"health\" is no path; allowed: a path that begins with a slash and has no spaces, such as \
         /health",
    );
    variant_refused("health: { failures: 0 }", "25: health.failures: must be from 1 to 100, not 0");
}

#[test]
fn bad_instances_are_named_with_what_is_allowed() {
    let of = |key: &str| format!("endpoints[0].variants[0].instances[0].{key}");
    instance_refused(
        "{ url: 'grpc://a' }",
        &format!("14: {}: must begin with http:// or https://, such as http://10.0.0.1:8000", of("url")),
    );
    instance_refused(
        "{ dns: 'http://10.0.0.1' }",
        &format!("14: {}: must be a name, not an address; give an address by url", of("dns")),
    );
    instance_refused(
        "{ url: 'http://a', weight: 0 }",
        &format!("34: {}: a weight is a number above 0, not 0", of("weight")),
    );
    instance_refused(
        "{ url: 'http://a', max_in_flight: 0 }",
        &format!("41: {}: must be from 1 to 1000000, not 0", of("max_in_flight")),
    );
    instance_refused(
        "{ url: 'http://a', id: 7 }",
        &format!("30: {}: expected text; a number needs quotes, found a whole number", of("id")),
    );
    instance_refused(
        "{ url: 'http://a', id: 'a b' }",
        &format!("30: {}: \"a b\" is no id; allowed: 1 to 255 visible ASCII characters, no spaces", of("id")),
    );
    instance_refused("{ weight: 1 }", "7: an instance needs `url` or `dns`");
    instance_refused("{ url: 'http://a', dns: 'http://b' }", "7: an instance has either `url` or `dns`, not both");
    instance_refused(
        "{ dns: 'http://a', id: x }",
        "30: `id` goes with `url`: instances behind a DNS name are called by their addresses",
    );
    instance_refused(
        "{ url: 'http://a', resolve_interval: 1s }",
        "7: `resolve_interval` goes with `dns`, not with `url`",
    );
    instance_refused(
        "{ url: 'http://a', api_key_env: NO_SUCH_KEY }",
        "39: api_key_env: the environment variable NO_SUCH_KEY is not set",
    );
}

#[test]
fn names_and_ids_are_given_once() {
    refused(
        "endpoints:
- name: e
  variants:
  - { name: v, instances: [{ url: 'http://a' }, { url: 'HTTP://A:80/' }] }
  - { name: v, instances: [{ url: 'http://a', id: x }, { url: 'http://b', id: x }] }
  - { name: w, instances: [{ dns: 'http://n' }, { dns: 'http://N/' }] }
- name: e
  variants: [{ name: v, instances: [{ url: 'http://a' }] }]
",
        &[
            "isotherm.yaml:4:49: instance http://a is given a second time in this variant; the first is at \
             isotherm.yaml:4:28",
            "isotherm.yaml:5:13: variant v is given a second time; the first is at isotherm.yaml:4:13",
            "isotherm.yaml:5:56: instance id x is given a second time in this variant; the first is at \
             isotherm.yaml:5:28",
            "isotherm.yaml:6:49: DNS name http://n is given a second time in this variant; the first is at \
             isotherm.yaml:6:28",
            "isotherm.yaml:7:9: endpoint e is given a second time; the first is at isotherm.yaml:2:9",
        ],
    );
}

#[test]
fn every_mistake_is_told_not_only_the_first() {
    refused(
        "listen: 1\nlisten: 127.0.0.1:1\nlimits: { body: 0, uri: x }\nendpoints:\n- name: a b\n- []\n",
        &[
            "isotherm.yaml:1:9: listen: expected an address such as 127.0.0.1:8080, found a whole number",
            "isotherm.yaml:2:1: listen: given a second time; the first is at line 1",
            "isotherm.yaml:3:17: limits.body: must be from 1 byte to 1024GiB",
            "isotherm.yaml:3:25: limits.uri: \"x\" is no size; allowed: a whole number of bytes, or one with KiB, MiB \
             or GiB, such as 64KiB or 32MiB",
            "isotherm.yaml:5:9: endpoints[0].name: \"a b\" is no name; allowed: 1 to 63 letters, digits and hyphens, a \
             hyphen neither first nor last",
            "isotherm.yaml:6:3: endpoints[1]: expected a mapping with the keys name, variants, found a list",
        ],
    );
}

#[test]
fn an_alert_that_could_never_or_always_fire_is_refused() {
    refused(
        "alerts:\n  window: 16m\n  hot_prefix: { skew: 0.5 }\n",
        &[
            "isotherm.yaml:2:11: alerts.window: the rules look at 5s to 15m of the past, not 16m",
            "isotherm.yaml:3:23: alerts.hot_prefix.skew: must be a number from 1 to 1000 times the fair share, not 0.5",
        ],
    );
    refused(
        "alerts:\n  window: 1s\n  hot_prefix: { skew: .inf }\n",
        &[
            "isotherm.yaml:2:11: alerts.window: the rules look at 5s to 15m of the past, not 1s",
            "isotherm.yaml:3:23: alerts.hot_prefix.skew: must be a number from 1 to 1000 times the fair share, not inf",
        ],
    );
    let endpoint = "endpoints: [{ name: e, variants: [{ name: v, instances: [{ url: 'http://a' }] }] }]";
    load(&format!("alerts: {{ window: 15m, hot_prefix: {{ skew: 1.5 }} }}\n{endpoint}\n")).expect("both can be");
}

#[test]
fn what_is_no_yaml_is_told_with_its_place() {
    refused("listen: [", &["isotherm.yaml:1:9: not valid YAML: unclosed bracket '['"]);
    refused("a: 1\n\tb: 2\n", &["isotherm.yaml:1:4: not valid YAML: while scanning a plain scalar, found a tab"]);
    refused("a: 1\n---\nb: 2\n", &["isotherm.yaml:3:1: not valid YAML: a second document begins here; allowed: one"]);
    refused(
        "- a\n",
        &["isotherm.yaml:1:1: expected a mapping with the keys listen, tls, admin, auth, hash_seed, hash_seed_env, \
           hash_seed_file, expose_decisions, inject_include_usage, inject_cache_salt, allow_paths, access_log, \
         access_log_prompts, diagnostics, timeouts, \
           limits, guards, instances_tls, alerts, otlp, endpoints, aws, found a list"],
    );
}

#[test]
fn a_file_of_mistakes_only_is_not_read_to_its_end() {
    let text: String = (0..1_000).map(|key| format!("k{key}: 1\n")).collect();
    let lines = load(&text).unwrap_err();
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[0], "isotherm.yaml: more than 100 mistakes; the rest was not looked at");
}

#[test]
fn an_alias_bomb_is_refused() {
    let levels = (1..30).map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1));
    let text: String = std::iter::once("a0: &a0 [x]\n".to_owned()).chain(levels).collect();
    let lines = load(&text).unwrap_err();
    assert!(lines[0].contains("not valid YAML"), "{lines:?}");
}

#[test]
fn a_file_without_endpoints_says_how_to_give_some() {
    for text in ["", "# nothing yet\n", "endpoints: []\n"] {
        refused(text, &["isotherm.yaml: no endpoint is configured; allowed: `endpoints` in a file, or --instance URL"]);
    }
    refused(
        "endpoints: [{ name: e, variants: [] }, { name: f, variants: [{ name: v, weight: 0, instances: [] }] }]",
        &[
            "isotherm.yaml:1:13: endpoint e needs at least one variant",
            "isotherm.yaml:1:40: endpoint f: at least one variant needs a weight above 0",
        ],
    );
    let nothing = load_flags(&Environment::default(), &Overrides::default()).unwrap_err();
    assert_eq!(
        nothing,
        ["configuration: no endpoint is configured; allowed: `endpoints` in a file, or --instance URL"]
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let files = Files::with("");
    std::fs::remove_file(files.path("isotherm.yaml")).unwrap();
    let lines = files.load(&Environment::default(), &Overrides::default()).unwrap_err();
    assert_eq!(lines, ["isotherm.yaml: cannot be read: No such file or directory (os error 2)"]);
}

#[test]
fn a_listener_beyond_loopback_needs_keys_or_a_written_none() {
    for (listen, auth, allowed) in [
        ("127.0.0.1:1", "", true),
        ("127.9.9.9:1", "", true),
        ("'[::1]:1'", "", true),
        ("'[::ffff:127.0.0.1]:1'", "", true),
        ("0.0.0.0:1", "auth: none", true),
        ("0.0.0.0:1", "auth: { keys_file: keys }", true),
        ("0.0.0.0:1", "", false),
        ("'[::]:1'", "", false),
        ("10.0.0.1:1", "", false),
        ("'[::ffff:10.0.0.1]:1'", "", false),
    ] {
        let result = load(&format!("listen: {listen}\n{auth}\n{ENDPOINT}\n"));
        assert_eq!(result.is_ok(), allowed, "{listen} {auth}: {result:?}");
    }
    refused(
        &format!("listen: 0.0.0.0:8080\n{ENDPOINT}\n"),
        &["isotherm.yaml:1:9: 0.0.0.0:8080 is reachable from other machines, and no keys are set; allowed: \
           `auth: { keys_file: PATH }` or --keys-file PATH to let key holders in, `auth: none` or --auth none to let \
           anyone in, or a loopback address"],
    );
}

#[test]
fn a_keys_file_that_is_not_there_or_not_right_is_refused() {
    element_refused(
        "auth: { keys_file: none/keys }",
        "1:7: the keys file none/keys cannot be read: No such file or directory (os error 2)",
    );
    let files = Files::with(&format!("auth: {{ keys_file: keys }}\n{ENDPOINT}"));
    std::fs::write(files.path("keys"), "alice sk-isotherm-in-the-clear\n").unwrap();
    let lines = files.load(&Environment::default(), &Overrides::default()).unwrap_err();
    assert_eq!(
        lines,
        [
            "keys:1:7: no key after the name; allowed: `name sha256:HEX` or `name aws:ACCESS_KEY_ID:SECRET`, never an opaque \
          key itself"
        ]
    );
}

#[test]
fn a_keys_file_with_secrets_is_not_for_others_to_read() {
    let files = Files::with(&format!("auth: {{ keys_file: keys }}\n{ENDPOINT}"));
    let load = || files.load(&Environment::default(), &Overrides::default());
    let set_mode = |mode| std::fs::set_permissions(files.path("keys"), Permissions::from_mode(mode)).unwrap();
    std::fs::write(files.path("keys"), "alice aws:AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n").unwrap();
    set_mode(0o644);
    assert_eq!(
        load().unwrap_err(),
        ["keys: holds secrets (`aws:` keys) and is open to others, mode 644; allowed: 600 or stricter, or 640 if it \
          belongs to root; `chmod 600 keys` makes it so"]
    );
    set_mode(0o600);
    assert!(load().is_ok());
}

#[test]
fn the_two_planes_have_ports_of_their_own() {
    element_refused(
        "admin: { listen: 127.0.0.1:8080 }",
        "1:18: the admin plane (127.0.0.1:8080) and the data plane (127.0.0.1:8080) need ports of their own",
    );
    let ephemeral = load(&format!("listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\n{ENDPOINT}"));
    assert!(ephemeral.is_ok(), "the system gives each its own");
}

#[test]
fn a_seed_has_one_source_that_holds_one() {
    element_refused(
        "hash_seed: 1\nhash_seed_env: SEED",
        "2:16: give one of hash_seed, hash_seed_env and hash_seed_file",
    );
    element_refused(
        "hash_seed_env: NO_SUCH_SEED",
        "1:16: hash_seed_env: the environment variable NO_SUCH_SEED holds no seed or cannot be read",
    );
    element_refused("hash_seed_file: none", "1:17: hash_seed_file: none holds no seed or cannot be read");
}

#[test]
fn flags_and_variables_are_named_as_they_are_written() {
    let overrides = Overrides {
        instances: vec!["10.0.0.1:8000".into(), "a b=http://a".into(), "http://a".into(), "http://a/".into()],
        strategy: Some("fastest".into()),
        prefix_length: Some("0".into()),
        port: Some("99999".into()),
        auth: Some("all".into()),
        ..Overrides::default()
    };
    let variables = environment(&[
        ("ISOTHERM_CONCURRENCY_THRESHOLD", "many"),
        ("ISOTHERM_HOST", "example.com"),
        ("ISOTHERM_STRATEGY", "overridden"),
        ("ISOTHERM_EXPOSE_DECISIONS", "si"),
    ]);
    assert_eq!(
        load_flags(&variables, &overrides).unwrap_err(),
        [
            "--auth: \"all\" is not allowed; allowed: none (keys are given by --keys-file)",
            "--instance: must begin with http:// or https://, such as http://10.0.0.1:8000",
            "--instance: \"a b\" is no id; allowed: 1 to 255 visible ASCII characters, no spaces",
            "--port: \"99999\" is no port; allowed: 0 to 65535, where 0 lets the system choose",
            "--prefix-length: prefix_length must be from 1 to 65536, not 0",
            "--strategy: \"fastest\" is no strategy; allowed: RANDOM, ROUND_ROBIN, LEAST_OUTSTANDING_REQUESTS, \
             PREFIX_AWARE, ADAPTIVE",
            "environment variable ISOTHERM_CONCURRENCY_THRESHOLD: \"many\" is no whole number",
            "environment variable ISOTHERM_EXPOSE_DECISIONS: \"si\" is not allowed; allowed: true, false",
            "environment variable ISOTHERM_HOST: \"example.com\" is no address to listen on; allowed: an IP address, \
             such as 127.0.0.1, 0.0.0.0 or ::",
        ]
    );
}

#[test]
fn contradicting_flags_are_refused() {
    let given = |urls: &[&str]| Overrides {
        instances: urls.iter().map(|url| url.to_string()).collect(),
        ..Overrides::default()
    };
    assert_eq!(
        load_flags(&Environment::default(), &given(&["http://a", "http://a/"])).unwrap_err(),
        ["--instance: instance http://a is given a second time in this variant; the first is at --instance"]
    );
    let both = Overrides { auth: Some("none".into()), keys_file: Some("k".into()), ..given(&["http://a"]) };
    assert_eq!(
        load_flags(&Environment::default(), &both).unwrap_err(),
        ["--auth: contradicts --keys-file; give one of them"]
    );
    let public = Overrides { host: Some("0.0.0.0".into()), ..given(&["http://a"]) };
    let lines = load_flags(&Environment::default(), &public).unwrap_err();
    assert!(lines[0].starts_with("--host: 0.0.0.0:8080 is reachable from other machines"), "{lines:?}");
    let two = "endpoints: [{ name: e, variants: [{ name: v, instances: [] }, { name: w, instances: [] }] }]";
    assert_eq!(
        Files::with(two).load(&Environment::default(), &given(&["http://a"])).unwrap_err(),
        ["--instance: replaces the instances of the file, which needs exactly one endpoint with one variant for that"]
    );
}

#[test]
fn no_message_and_no_debug_output_tells_a_secret() {
    let secret = "hunter2";
    let text = format!(
        "hash_seed: {secret}
endpoints: [{{ name: e, variants: [{{ name: v, instances: [{{ url: 'http://u:{secret}@a' }}] }}] }}]
"
    );
    let lines = load(&text).unwrap_err();
    assert!(lines.len() == 2 && !lines.concat().contains(secret), "{lines:?}");
    let files = Files::with(
        "endpoints: [{ name: e, variants: [{ name: v, instances: [{ url: 'http://a', api_key_env: K }] }] }]",
    );
    let variables = environment(&[("K", secret)]);
    let config = files.load(&variables, &Overrides::default()).unwrap();
    assert!(!format!("{config:?}{variables:?}").contains(secret));
    let lines = files.load(&environment(&[("K", "hunter2 hunter2")]), &Overrides::default()).unwrap_err();
    assert!(lines.len() == 1 && !lines.concat().contains(secret), "{lines:?}");
}
