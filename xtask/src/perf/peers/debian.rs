//! nginx and HAProxy: those on the path, else their Debian packages, unpacked and not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Place, Subject, free_port, log_of};
use crate::failure::Failure;
use crate::machine;
use crate::perf::process::Process;

/// The packages, with the libraries that a small system lacks.
const PACKAGES: [&str; 5] = ["nginx", "haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"];

/// Kept connections to the engines (nginx has none by default), answers passed on at once, prompts kept in memory, no
/// log: as nginx's manual advises for proxies of streams.
pub(super) fn nginx(place: &Place<'_>) -> Result<Subject, Failure> {
    let program = program(place, "nginx")?;
    let folder = place.folder.join("nginx");
    for part in ["", "body", "proxy", "other"] {
        let part = folder.join(part);
        fs::create_dir_all(&part).map_err(|error| Failure::file(&part, &error))?;
    }
    let port = free_port()?;
    let servers: String = authorities(place).map(|authority| format!("server {authority};\n")).collect();
    let at = folder.display();
    let configuration = format!(
        "daemon off;\nworker_processes auto;\nworker_rlimit_nofile 20000;\npid {at}/nginx.pid;\nerror_log {at}/error.log;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\naccess_log off;\nkeepalive_requests 100000000;\nkeepalive_timeout 300s;\ntcp_nodelay on;\n\
         client_max_body_size 64m;\nclient_body_buffer_size 2m;\n\
         client_body_temp_path {at}/body;\nproxy_temp_path {at}/proxy;\nfastcgi_temp_path {at}/other;\n\
         uwsgi_temp_path {at}/other;\nscgi_temp_path {at}/other;\n\
         upstream engines {{\n{servers}keepalive 1024;\nkeepalive_requests 100000000;\n}}\n\
         server {{\nlisten 127.0.0.1:{port} backlog=4096;\nlocation / {{\nproxy_pass http://engines;\n\
         proxy_http_version 1.1;\nproxy_set_header Connection \"\";\nproxy_buffering off;\nproxy_read_timeout 300s;\n\
         }}\n}}\n}}\n"
    );
    let file = write(&folder.join("nginx.conf"), &configuration)?;
    let mut command = libraries(machine::command(&program), place);
    command.arg("-p").arg(&folder).arg("-c").arg(file).arg("-e").arg(folder.join("error.log"));
    Ok(Subject {
        name: "nginx",
        version: version(libraries(machine::command(&program), place)),
        tuning: "worker_processes auto, upstream keepalive 1024, proxy_buffering off, prompts in memory, no log",
        authority: format!("127.0.0.1:{port}"),
        process: Process::start(command, &log_of("nginx"))?,
    })
}

/// Connections kept and shared (`http-reuse always`), a thread for each core, and `http-no-delay`, which its manual has
/// for interactive streams.
pub(super) fn haproxy(place: &Place<'_>) -> Result<Subject, Failure> {
    let program = program(place, "haproxy")?;
    let port = free_port()?;
    let servers: String = authorities(place)
        .enumerate()
        .map(|(ordinal, authority)| format!("    server engine-{ordinal} {authority} pool-max-conn 1024\n"))
        .collect();
    let configuration = format!(
        "global\n    maxconn 8192\ndefaults\n    mode http\n    option http-keep-alive\n    option http-no-delay\n    \
         timeout connect 5s\n    timeout client 300s\n    timeout server 300s\n    timeout http-keep-alive 300s\n\
         frontend users\n    bind 127.0.0.1:{port} backlog 4096\n    default_backend engines\n\
         backend engines\n    balance roundrobin\n    http-reuse always\n{servers}"
    );
    let file = write(&place.folder.join("haproxy.cfg"), &configuration)?;
    let mut command = libraries(machine::command(&program), place);
    command.arg("-db").arg("-f").arg(file);
    Ok(Subject {
        name: "haproxy",
        version: version(libraries(machine::command(&program), place)),
        tuning: "a thread per core, http-reuse always, http-no-delay, no log",
        authority: format!("127.0.0.1:{port}"),
        process: Process::start(command, &log_of("haproxy"))?,
    })
}

fn authorities<'p>(place: &Place<'p>) -> impl Iterator<Item = &'p str> {
    place.urls.iter().map(|url| url.trim_start_matches("http://"))
}

fn write(file: &Path, text: &str) -> Result<PathBuf, Failure> {
    fs::write(file, text).map_err(|error| Failure::file(file, &error))?;
    Ok(file.to_owned())
}

fn version(mut command: Command) -> String {
    let said = command.arg("-v").output().map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let first = said.lines().next().unwrap_or_default();
    let number = first.split([' ', '/']).find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()));
    number.unwrap_or("unknown").to_owned()
}

fn program(place: &Place<'_>, name: &str) -> Result<PathBuf, Failure> {
    if machine::has(name) {
        return Ok(name.into());
    }
    let unpacked = place.folder.join("debian/usr/sbin").join(name);
    if !unpacked.is_file() {
        if !machine::has("apt-get") {
            return Err(Failure::Failed(format!("{name} is neither on the path nor to be had: there is no apt-get")));
        }
        unpack(&place.folder.join("debian"))?;
    }
    Ok(unpacked)
}

fn unpack(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    let download = || machine::run(machine::command("apt-get").current_dir(folder).arg("download").args(PACKAGES));
    if download().is_err() {
        machine::run(machine::command("apt-get").args(["--quiet", "update"]))?;
        download()?;
    }
    let unpack = "for package in *.deb; do dpkg-deb --extract \"$package\" . && rm \"$package\"; done";
    machine::run(machine::command("sh").current_dir(folder).args(["-ec", unpack]))
}

/// The command with the unpacked libraries in reach.
fn libraries(mut command: Command, place: &Place<'_>) -> Command {
    let folder = place.folder.join("debian/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    command.env("LD_LIBRARY_PATH", folder);
    command
}
