//! One vLLM replica: started on a free port, ready when its health path answers, gone when dropped.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::setup::Installed;
use crate::failure::Failure;
use crate::machine;

/// A replica needs about 70 s on an idle machine.
const READY_WITHIN: Duration = Duration::from_secs(600);

/// Name under which the model is served.
pub(crate) const MODEL: &str = "small-llama";

#[derive(Debug)]
pub(crate) struct Replica {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Replica {
    /// Starts the process; it is not ready yet. One thread each, so that two do not slow each other on two cores.
    pub(crate) fn start(installed: &Installed, folder: &Path, ordinal: usize) -> Result<Replica, Failure> {
        let port = free_port()?;
        let log = folder.join(format!("replica-{ordinal}.log"));
        let output = File::create(&log).map_err(|error| Failure::file(&log, &error))?;
        let errors = output.try_clone().map_err(|error| Failure::file(&log, &error))?;
        let mut command = machine::command(&installed.python);
        command.args(["-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"]);
        command.args(["--port", &port.to_string(), "--served-model-name", MODEL, "--model"]).arg(&installed.model);
        command.args(["--enable-prefix-caching", "--enable-prompt-tokens-details", "--enforce-eager"]);
        // On a CPU: blocks are multiples of 32 tokens; bf16 is many times slower than float32.
        command.args(["--dtype", "float32", "--block-size", "32", "--max-model-len", "8192", "--max-num-seqs", "8"]);
        command.envs([
            ("VLLM_CPU_KVCACHE_SPACE", "1"),
            ("VLLM_CPU_OMP_THREADS_BIND", "nobind"),
            ("OMP_NUM_THREADS", "1"),
            ("VLLM_NO_USAGE_STATS", "1"),
            ("DO_NOT_TRACK", "1"),
            ("HF_HUB_OFFLINE", "1"),
            ("TRANSFORMERS_OFFLINE", "1"),
        ]);
        let child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
        let child = child.map_err(|error| Failure::Failed(format!("vLLM did not start: {error}")))?;
        Ok(Replica { child, port, log })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits for `GET /health` to answer 200.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let started = Instant::now();
        while !self.is_healthy() {
            let ended = self.child.try_wait().ok().flatten().map(|status| format!("ended: {status}"));
            let late = (started.elapsed() > READY_WITHIN).then(|| format!("is not ready after {READY_WITHIN:?}"));
            if let Some(trouble) = ended.or(late) {
                return Err(Failure::Failed(format!("vLLM at {} {trouble}; see {}", self.url(), self.log.display())));
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        println!("vLLM at {} is ready after {:.0} s", self.url(), started.elapsed().as_secs_f64());
        Ok(())
    }

    fn is_healthy(&self) -> bool {
        let asked = || -> std::io::Result<bool> {
            let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
            connection.set_read_timeout(Some(Duration::from_secs(5)))?;
            connection.write_all(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
            let mut head = [0; 12];
            connection.read_exact(&mut head)?;
            Ok(head.ends_with(b" 200"))
        };
        asked().unwrap_or(false)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // The engine core is a child of the server and leaves with it when the server is asked to end.
        let _ = std::process::Command::new("kill").arg(self.child.id().to_string()).status();
        let asked = Instant::now();
        while asked.elapsed() < Duration::from_secs(20) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on at this moment.
fn free_port() -> Result<u16, Failure> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Failure::Failed(format!("no free port: {error}")))
}
