//! A message in the form of Alertmanager's webhooks, version 4
//! (<https://prometheus.io/docs/alerting/latest/configuration/#webhook_config>).

use std::collections::BTreeMap;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;

use crate::alerts::book::{Alert, Group, Labels};

/// What Alertmanager writes for an end that has not come.
const NO_END: &str = "0001-01-01T00:00:00Z";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'g> {
    version: &'static str,
    group_key: String,
    truncated_alerts: u32,
    status: &'static str,
    receiver: &'static str,
    group_labels: BTreeMap<&'static str, &'g str>,
    common_labels: Labels,
    common_annotations: BTreeMap<&'static str, &'g str>,
    #[serde(rename = "externalURL")]
    external_url: &'g str,
    alerts: Vec<AlertMessage<'g>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AlertMessage<'g> {
    status: &'static str,
    labels: Labels,
    annotations: BTreeMap<&'static str, &'g str>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL")]
    generator_url: &'g str,
    fingerprint: String,
}

/// The message about a rule's alerts, from the router whose admin plane is at `url`.
pub(super) fn of(group: &Group, url: &str) -> String {
    let alerts: Vec<AlertMessage<'_>> = group.alerts.iter().map(|alert| AlertMessage::of(alert, url)).collect();
    let fires = alerts.iter().any(|alert| alert.status == "firing");
    let message = Message {
        version: "4",
        group_key: format!("isotherm:{{alertname=\"{}\"}}", group.rule),
        truncated_alerts: 0,
        status: if fires { "firing" } else { "resolved" },
        receiver: "isotherm",
        group_labels: BTreeMap::from([("alertname", group.rule)]),
        common_labels: common(alerts.iter().map(|alert| &alert.labels)),
        common_annotations: match &group.alerts[..] {
            [only] => annotations(only),
            _ => BTreeMap::new(),
        },
        external_url: url,
        alerts,
    };
    serde_json::to_string(&message).unwrap_or_default()
}

impl<'g> AlertMessage<'g> {
    fn of(alert: &'g Alert, url: &'g str) -> AlertMessage<'g> {
        let mut labels = alert.labels.clone();
        labels.insert("alertname", alert.rule.to_owned());
        labels.insert("severity", alert.severity.to_owned());
        AlertMessage {
            status: if alert.ended.is_some() { "resolved" } else { "firing" },
            fingerprint: fingerprint(&labels),
            labels,
            annotations: annotations(alert),
            starts_at: rfc3339(alert.began),
            ends_at: alert.ended.map_or_else(|| NO_END.to_owned(), rfc3339),
            generator_url: url,
        }
    }
}

fn annotations(alert: &Alert) -> BTreeMap<&'static str, &str> {
    BTreeMap::from([("summary", &*alert.summary), ("description", &*alert.description)])
}

/// The labels that all have in common.
fn common<'l>(mut all: impl Iterator<Item = &'l Labels>) -> Labels {
    let Some(first) = all.next() else { return Labels::new() };
    all.fold(first.clone(), |mut common, labels| {
        common.retain(|name, value| labels.get(name) == Some(value));
        common
    })
}

/// The same for the same labels, from whichever router.
fn fingerprint(labels: &Labels) -> String {
    let text: String = labels.iter().map(|(name, value)| format!("{name}\u{0}{value}\u{0}")).collect();
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
}

fn rfc3339(time: SystemTime) -> String {
    Timestamp::try_from(time).map(|time| format!("{time:.3}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::alerts::book::State;

    fn alert(instance: &str, ended: Option<u64>) -> Alert {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        Alert {
            rule: "IsothermInstanceIll",
            state: State::Firing,
            severity: "warning",
            labels: Labels::from([("endpoint", "chat".to_owned()), ("instance", instance.to_owned())]),
            values: Value::Null,
            summary: format!("{instance} does not answer"),
            description: "why".to_owned(),
            since: 0.0,
            began: at(1_795_955_696),
            ended: ended.map(at),
        }
    }

    #[test]
    fn a_message_has_alertmanagers_fields() {
        let group = Group { rule: "IsothermInstanceIll", alerts: vec![alert("i", None)] };
        let message: Value = serde_json::from_str(&of(&group, "http://127.0.0.1:8081")).unwrap();
        let labels = json!({ "alertname": "IsothermInstanceIll", "endpoint": "chat", "instance": "i",
                             "severity": "warning" });
        let annotations = json!({ "summary": "i does not answer", "description": "why" });
        let fingerprint = message["alerts"][0]["fingerprint"].clone();
        assert_eq!(fingerprint.as_str().map(str::len), Some(16));
        assert_eq!(
            message,
            json!({
                "version": "4", "groupKey": "isotherm:{alertname=\"IsothermInstanceIll\"}", "truncatedAlerts": 0,
                "status": "firing", "receiver": "isotherm", "groupLabels": { "alertname": "IsothermInstanceIll" },
                "commonLabels": labels, "commonAnnotations": annotations, "externalURL": "http://127.0.0.1:8081",
                "alerts": [{
                    "status": "firing", "labels": labels, "annotations": annotations,
                    "startsAt": "2026-11-29T12:34:56.000Z", "endsAt": "0001-01-01T00:00:00Z",
                    "generatorURL": "http://127.0.0.1:8081", "fingerprint": fingerprint,
                }],
            })
        );
    }

    #[test]
    fn a_group_fires_while_one_of_it_does_and_has_in_common_what_all_have() {
        let both =
            Group { rule: "IsothermInstanceIll", alerts: vec![alert("i", None), alert("j", Some(1_795_955_700))] };
        let message: Value = serde_json::from_str(&of(&both, "u")).unwrap();
        assert_eq!(message["status"], "firing");
        assert_eq!(message["alerts"][1]["status"], "resolved");
        assert_eq!(message["alerts"][1]["endsAt"], "2026-11-29T12:35:00.000Z");
        assert_eq!(message["commonLabels"].as_object().unwrap().len(), 3);
        let ended = Group { rule: "IsothermInstanceIll", alerts: vec![alert("j", Some(1_795_955_700))] };
        let message: Value = serde_json::from_str(&of(&ended, "u")).unwrap();
        assert_eq!(message["status"], "resolved");
    }
}
