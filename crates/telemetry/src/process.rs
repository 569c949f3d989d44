//! What the operating system says of the process, asked at each scrape.

use std::fmt;
use std::fs;
use std::time::SystemTime;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::names::{self, MetricName};

/// Linux reports processor time in hundredths of a second on every architecture (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Start time, memory, processor time and file descriptors; what `/proc` does not say is left out.
#[derive(Debug)]
pub(crate) struct ProcessCollector {
    /// Seconds since the Unix epoch.
    start_time: f64,
}

impl ProcessCollector {
    pub(crate) fn started_at(start: SystemTime) -> ProcessCollector {
        let since_epoch = start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        ProcessCollector { start_time: since_epoch.as_secs_f64() }
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        write(&mut encoder, names::PROCESS_START_TIME, &ConstGauge::new(self.start_time))?;
        if let Some(seconds) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(cpu_seconds) {
            write(&mut encoder, names::PROCESS_CPU, &ConstCounter::new(seconds))?;
        }
        if let Some(bytes) = fs::read_to_string("/proc/self/status").ok().as_deref().and_then(resident_bytes) {
            write(&mut encoder, names::PROCESS_RESIDENT_MEMORY, &ConstGauge::new(bytes))?;
        }
        if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
            // One of them is the one by which the directory is read.
            let open = descriptors.count().saturating_sub(1) as u64;
            write(&mut encoder, names::PROCESS_OPEN_FDS, &ConstGauge::new(open))?;
        }
        Ok(())
    }
}

fn write(encoder: &mut DescriptorEncoder<'_>, of: MetricName, metric: &impl EncodeMetric) -> Result<(), fmt::Error> {
    let (name, unit) = of.parts();
    // The registry puts the full stop after its own help texts, not after a collector's.
    let help = format!("{}.", of.help);
    metric.encode(encoder.encode_descriptor(name, &help, unit.as_ref(), metric.metric_type())?)
}

/// User and system time out of `/proc/self/stat`: the 14th and 15th field; the second one, the command in parentheses,
/// may hold spaces.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, after_command) = stat.rsplit_once(')')?;
    let mut fields = after_command.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(ticks as f64 / TICKS_PER_SECOND)
}

/// `VmRSS` out of `/proc/self/status`, which is in KiB.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_proc_are_found() {
        let stat = "4242 (odd) name) S 1 4242 4242 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 8 0 100 1 1";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("garbage"), None);
        assert_eq!(resident_bytes("Name:\tisotherm\nVmRSS:\t   10240 kB\nThreads: 3\n"), Some(10_485_760));
        assert_eq!(resident_bytes("VmRSS: many"), None);
    }
}
