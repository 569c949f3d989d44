//! Frames as clients will read them.

use proptest::prelude::*;

use super::*;

fn all(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while let Some((frame, length)) = decode(bytes).unwrap() {
        frames.push(frame);
        bytes = &bytes[length..];
    }
    assert!(bytes.is_empty(), "a frame is not whole");
    frames
}

/// Made by hand after the format's description; botocore's parser has read it back.
#[test]
fn a_payload_part_is_the_bytes_that_aws_sends() {
    let mut bytes = Vec::new();
    payload_parts(b"hi", &mut bytes);
    let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hexadecimal, GOLDEN);
}

const GOLDEN: &str = concat!(
    "0000006b0000005999777065",
    "0b3a6576656e742d7479706507000b5061796c6f616450617274",
    "0d3a636f6e74656e742d747970650700186170706c69636174696f6e2f6f637465742d73747265616d",
    "0d3a6d6573736167652d747970650700056576656e74",
    "6869f0e10a16",
);

#[test]
fn a_payload_part_carries_the_bytes_as_they_are() {
    let mut bytes = Vec::new();
    payload_parts(b"\x00\xffdata: 1\n\n", &mut bytes);
    let [frame] = &all(&bytes)[..] else { panic!("one frame") };
    let headers =
        [(":event-type", "PayloadPart"), (":content-type", "application/octet-stream"), (":message-type", "event")];
    assert_eq!((&frame.headers[..], frame.payload), (&headers[..], &b"\x00\xffdata: 1\n\n"[..]));
}

#[test]
fn nothing_is_no_frame_and_too_much_is_several() {
    let mut bytes = Vec::new();
    payload_parts(b"", &mut bytes);
    assert!(bytes.is_empty());
    let long = vec![7; LONGEST_PAYLOAD + 1];
    payload_parts(&long, &mut bytes);
    assert_eq!(all(&bytes).iter().map(|frame| frame.payload.len()).collect::<Vec<_>>(), [LONGEST_PAYLOAD, 1]);
}

#[test]
fn exceptions_name_their_kind_and_tell_a_code() {
    let of = |kind| {
        let mut bytes = Vec::new();
        exception(kind, "it \"broke\"", &mut bytes);
        let frames = all(&bytes);
        let payload: serde_json::Value = serde_json::from_slice(frames[0].payload).unwrap();
        assert_eq!(frames[0].header(":message-type"), Some("exception"));
        assert_eq!(frames[0].header(":content-type"), Some("application/json"));
        assert_eq!(payload["Message"], "it \"broke\"");
        (frames[0].header(":exception-type").unwrap().to_owned(), payload["ErrorCode"].as_str().map(str::to_owned))
    };
    assert_eq!(of(StreamException::StreamBroken), ("ModelStreamError".into(), Some("StreamBroken".into())));
    let time = ("ModelStreamError".into(), Some("ModelInvocationTimeExceeded".into()));
    assert_eq!(of(StreamException::ModelInvocationTimeExceeded), time);
    assert_eq!(of(StreamException::InternalFailure), ("InternalStreamFailure".into(), None));
}

#[test]
fn errors_that_no_model_knows_are_headers_only() {
    let mut bytes = Vec::new();
    error("InternalFailure", "?", &mut bytes);
    let [frame] = &all(&bytes)[..] else { panic!("one frame") };
    let told = [":message-type", ":error-code", ":error-message"].map(|name| frame.header(name).unwrap());
    assert_eq!((told, frame.payload), (["error", "InternalFailure", "?"], &b""[..]));
}

#[test]
fn every_broken_byte_is_noticed() {
    let mut bytes = Vec::new();
    payload_parts(b"payload", &mut bytes);
    for place in 0..bytes.len() {
        let mut broken = bytes.clone();
        broken[place] ^= 0x40;
        assert!(decode(&broken).is_err(), "byte {place}");
    }
}

#[test]
fn a_value_too_long_for_a_header_is_cut_between_characters() {
    let mut bytes = Vec::new();
    error("X", &"ü".repeat(40_000), &mut bytes);
    assert_eq!(all(&bytes)[0].header(":error-message").unwrap().len(), 65_534);
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(payload in prop::collection::vec(any::<u8>(), 1..2_000), message in ".{0,200}", cut in 0usize..2_500) {
        let mut bytes = Vec::new();
        payload_parts(&payload, &mut bytes);
        let first = bytes.len();
        error("Code", &message, &mut bytes);
        let frames = all(&bytes);
        prop_assert_eq!(frames[0].payload, &payload[..]);
        prop_assert_eq!(frames[1].header(":error-message"), Some(&message[..]));
        // A frame that is not whole is awaited, not refused.
        prop_assert_eq!(decode(&bytes[..cut.min(first - 1)]), Ok(None));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), fix in any::<bool>()) {
        let mut bytes = bytes;
        if fix && bytes.len() >= PRELUDE {
            // Behind a sound checksum, the lengths are looked at.
            let checksum = crc32fast::hash(&bytes[..8]).to_be_bytes();
            bytes[8..PRELUDE].copy_from_slice(&checksum);
        }
        if let Ok(Some((_, length))) = decode(&bytes) {
            prop_assert!(length <= bytes.len());
        }
    }
}
