//! Mistakes in the `aws` section.

use super::*;

#[test]
fn bad_settings_of_aws_are_named_with_what_is_allowed() {
    element_refused("aws: { region: us-east-1 }", "1:6: aws: `data_dir` is missing");
    element_refused(
        "aws: { data_dir: d, account_id: 123456789012 }",
        "1:33: aws.account_id: expected text; a number needs quotes, found a whole number",
    );
    element_refused(
        "aws: { data_dir: d, account_id: '1234' }",
        "1:33: aws.account_id: \"1234\" is no account; allowed: twelve digits, such as 123456789012",
    );
    element_refused(
        "aws: { data_dir: d, region: Paris }",
        "1:29: aws.region: \"Paris\" is no region; allowed: 1 to 32 small letters, digits and hyphens, such as us-east-1",
    );
    element_refused("aws: { data_dir: d, providers: {} }", "1:32: aws.providers: expected a list, found a mapping");
}

#[test]
fn bad_providers_are_named_with_what_is_allowed() {
    let provider_refused = |provider: &str, line: &str| {
        element_refused(&format!("aws:\n  data_dir: d\n  providers:\n  - {provider}"), line);
    };
    provider_refused("{ match: { image: '*' } }", "4:5: a provider is one of `emulated`, `process` and `static`");
    provider_refused(
        "{ emulated: {}, static: { urls: ['http://a'] } }",
        "4:5: a provider is one of `emulated`, `process` and `static`",
    );
    provider_refused(
        "{ match: { image: '' }, emulated: {} }",
        "4:23: aws.providers[0].match.image: \"\" is no pattern; allowed: 1 to 255 characters without spaces, where * \
         stands for any and ? for one",
    );
    provider_refused(
        "{ match: { type: '*' }, emulated: {} }",
        "4:16: aws.providers[0].match.type: unknown key; allowed: instance_type, image",
    );
    provider_refused(
        "{ emulated: { speed: 0 } }",
        "4:26: aws.providers[0].emulated.speed: a speed is a number above 0, not 0",
    );
    provider_refused("{ process: { command: [] } }", "4:16: process.command needs a program");
    provider_refused(
        "{ process: { command: [vllm, serve] } }",
        "4:16: process: `{port}` must stand in `command` or `environment`: each instance has its own",
    );
    provider_refused("{ static: { urls: [] } }", "4:15: static.urls needs at least one URL");
    provider_refused("{ static: { urls: ['http://a', 'http://a:80'] } }", "4:36: http://a is given a second time");
    provider_refused(
        "{ static: { urls: ['http://a'], api_key_env: NO_SUCH_KEY } }",
        "4:50: api_key_env: the environment variable NO_SUCH_KEY is not set",
    );
}
