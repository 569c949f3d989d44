//! Who a process is, as `/proc` tells it: told from a later one of the same number, and found by its environment.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process that was seen running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessId {
    pub(super) pid: i32,
    /// When it started, in clock ticks since boot (proc(5), field 22 of `/proc/PID/stat`).
    pub(super) started: u64,
}

impl ProcessId {
    /// The process of that number. `None` for one that has ended, one that only waits for its parent to look, and on
    /// systems without `/proc`.
    pub(super) fn of(pid: i32) -> Option<ProcessId> {
        Some(ProcessId { pid, started: Stat::of(pid)?.started })
    }

    /// Whether it still runs.
    pub(super) fn is_there(self) -> bool {
        ProcessId::of(self.pid) == Some(self)
    }
}

/// The process that leads a group and has this variable in its environment. Children inherit it, and may lead groups
/// of their own: theirs is the parent that started first.
pub(super) fn leader_with(variable: &str, value: &str) -> Option<ProcessId> {
    let wanted = format!("{variable}={value}");
    let names = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let leaders = names.filter_map(|name| {
        let pid: i32 = name.parse().ok()?;
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let has_it = environment.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes());
        let stat = has_it.then(|| Stat::of(pid)).flatten()?;
        (stat.group == pid).then_some(ProcessId { pid, started: stat.started })
    });
    leaders.min_by_key(|leader| (leader.started, leader.pid))
}

/// What is read of `/proc/PID/stat`.
struct Stat {
    group: i32,
    started: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Stat> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        (state != "Z" && state != "X").then_some(Stat { group, started })
    }
}
