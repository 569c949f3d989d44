//! `DeleteAlarms` and `SetAlarmState`.

use super::{Call, check};
use crate::alarm::{AlarmState, Verdict};
use crate::document::Document;
use crate::input::{Input, Violations};
use crate::{CloudWatch, Refusal};

/// The most alarms of one deletion, as CloudWatch has it.
const MOST: usize = 100;

/// Takes alarms away; unknown names are passed over.
pub(crate) fn delete_alarms(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    input.require("AlarmNames");
    let names = input.texts("AlarmNames", 0..=MOST, 1..=255);
    check(&violations)?;
    cloudwatch.alarms().remove(&call.caller.account, &names)?;
    Ok(Document::Null)
}

/// Sets an alarm's state for a while.
pub(crate) fn set_alarm_state(cloudwatch: &CloudWatch, call: Call<'_>, input: &Document) -> Result<Document, Refusal> {
    let violations = Violations::default();
    let input = Input::of(input, &violations);
    let name = input.required_text("AlarmName", 1..=255);
    input.require("StateValue");
    let state = input.word("StateValue", AlarmState::WORDS, AlarmState::named);
    let reason = input.required_text("StateReason", 0..=1023).to_owned();
    let data = input.text("StateReasonData", 0..=4000).map(str::to_owned);
    check(&violations)?;
    if let Some(Err(error)) = data.as_deref().map(serde_json::from_str::<serde::de::IgnoredAny>) {
        return Err(Refusal::format(format!("StateReasonData was not valid JSON: {error}.")));
    }
    let Some(state) = state else { return Err(Refusal::missing("StateValue")) };
    let verdict = Verdict { state, reason };
    match cloudwatch.alarms().set(&call.caller.account, name, verdict, data, call.now)? {
        true => Ok(Document::Null),
        false => Err(Refusal::not_found(format!("Unknown alarm {name}."))),
    }
}
