//! `cargo xtask dist`: a fully static binary, its archive, and a container image's folder, in `dist/`.

use std::fs;
use std::path::{Path, PathBuf};

use isotherm_report::{Align, Table};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::machine;

const HELP: &str = "\
Makes a fully static binary, its archive and a container image's folder in dist/

Usage: cargo xtask dist [--target TRIPLE]

Options:
  --target TRIPLE   default: musl where rustup has that target and musl-gcc is there, else glibc, linked statically
  -h, --help        this text";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds, checks that the binary needs no other file, packs, and tries the image where a builder is there.
pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.help() {
        println!("{HELP}");
        return Ok(());
    }
    let target = match arguments.value("--target")? {
        Some(target) => target,
        None => default_target()?,
    };
    arguments.finish()?;
    let binary = build(&target)?;
    check_static(&binary)?;
    let dist = machine::root().join("dist");
    let _ = fs::remove_dir_all(&dist);
    let licences = third_party_licences(&target)?;
    let archive = pack(&dist, &binary, &licences, &target)?;
    let image = lay_out_image(&dist, &binary, &licences)?;
    let sums = "sha256sum *.tar.gz > SHA256SUMS";
    machine::run(machine::command("sh").current_dir(&dist).args(["-ec", sums]))?;
    let tried = try_image(&image)?;
    report(&[
        (&archive, "binary, licences, README, systemd units, Prometheus rules, Grafana dashboard"),
        (&dist.join("SHA256SUMS"), "of the archive"),
        (&image, &format!("podman build --tag isotherm dist/image; {tried}")),
    ])
}

/// musl where its standard library and its C compiler (`musl-gcc`, for the cryptography) are installed; glibc can be linked statically too, once the target is named.
fn default_target() -> Result<String, Failure> {
    let architecture = std::env::consts::ARCH;
    let musl = format!("{architecture}-unknown-linux-musl");
    let installed = machine::output(machine::command("rustup").args(["target", "list", "--installed"]));
    if machine::has("musl-gcc") && installed.is_ok_and(|targets| targets.lines().any(|target| target == musl)) {
        return Ok(musl);
    }
    let version = machine::output(machine::command("rustc").arg("-vV"))?;
    match version.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) if host.ends_with("-linux-gnu") || host.ends_with("-linux-musl") => Ok(host.to_owned()),
        host => Err(Failure::Failed(format!("no static binary for {host:?}; name a Linux target by --target"))),
    }
}

/// The flag must not reach build scripts and procedural macros, which are dynamic libraries: it does not where cargo
/// is told the target by name.
fn build(target: &str) -> Result<PathBuf, Failure> {
    let mut cargo = machine::cargo();
    cargo.args(["build", "--locked", "--profile", "dist", "--package", "isotherm", "--target", target]);
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    machine::run(&mut cargo)?;
    Ok(machine::target().join(target).join("dist/isotherm"))
}

/// Two witnesses: the loader's own word, and the binary running with nothing but itself.
fn check_static(binary: &Path) -> Result<(), Failure> {
    let said = machine::command("ldd").arg(binary).output();
    let said = said.map_err(|error| Failure::Failed(format!("ldd did not start: {error}")))?;
    let said = [said.stdout, said.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    println!("ldd: {}", said.trim());
    if !(said.contains("statically linked") || said.contains("not a dynamic executable")) {
        return Err(Failure::Failed(format!("{} is not static:\n{said}", binary.display())));
    }
    let version = machine::output(machine::command(binary).arg("--version").env_clear())?;
    println!("--version: {}", version.trim());
    Ok(())
}

fn pack(dist: &Path, binary: &Path, licences: &str, target: &str) -> Result<PathBuf, Failure> {
    let name = format!("isotherm-{VERSION}-{target}");
    let folder = dist.join(&name);
    let root = machine::root();
    copy(binary, &folder.join("isotherm"))?;
    let beside = [
        "LICENSE",
        "README.md",
        "packaging/isotherm.service",
        "packaging/isotherm.socket",
        "packaging/prometheus/isotherm.rules.yaml",
        "packaging/grafana/isotherm.json",
    ];
    for file in beside {
        let file = root.join(file);
        copy(&file, &folder.join(file.file_name().unwrap_or_default()))?;
    }
    write(&folder.join("THIRD-PARTY-LICENSES"), licences)?;
    let archive = dist.join(format!("{name}.tar.gz"));
    let mut tar = machine::command("tar");
    // The same content makes the same archive, whoever packs it and when.
    tar.current_dir(dist).args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", commit_time()))
        .args(["--use-compress-program", "gzip -n", "-cf"])
        .arg(&archive)
        .arg(&name);
    machine::run(&mut tar)?;
    fs::remove_dir_all(&folder).map_err(|error| Failure::file(&folder, &error))?;
    Ok(archive)
}

/// Seconds since 1970 of the last commit; 0 outside a repository.
fn commit_time() -> String {
    machine::output(machine::command("git").args(["log", "-1", "--format=%ct"]))
        .map_or_else(|_| "0".to_owned(), |time| time.trim().to_owned())
}

/// The licence texts of the crates in the binary: their terms ask that the texts go with it.
fn third_party_licences(target: &str) -> Result<String, Failure> {
    let tree =
        ["tree", "--locked", "--package", "isotherm", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let in_binary = machine::output(machine::cargo().args(tree).args(["--target", target]))?;
    let metadata = machine::output(machine::cargo().args(["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)
        .map_err(|error| Failure::Failed(format!("cargo metadata printed no JSON: {error}")))?;
    let mut text = String::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let line = format!("{} v{}", field("name"), field("version"));
        if package["source"].is_null() || !in_binary.lines().any(|crate_line| crate_line.starts_with(&line)) {
            continue;
        }
        text.push_str(&format!("{}\n{line} ({})\n\n", "=".repeat(100), field("license")));
        let folder = Path::new(field("manifest_path")).parent().unwrap_or(Path::new(""));
        for file in licence_files(folder)? {
            text.push_str(&fs::read_to_string(&file).map_err(|error| Failure::file(&file, &error))?);
            text.push('\n');
        }
    }
    Ok(text)
}

fn licence_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| Failure::file(folder, &error))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            path.is_file() && ["LICENSE", "LICENCE", "NOTICE", "COPYING"].iter().any(|start| name.starts_with(start))
        })
        .collect();
    files.sort();
    Ok(files)
}

fn lay_out_image(dist: &Path, binary: &Path, licences: &str) -> Result<PathBuf, Failure> {
    let image = dist.join("image");
    copy(binary, &image.join("isotherm"))?;
    copy(&machine::root().join("LICENSE"), &image.join("LICENSE"))?;
    copy(&machine::root().join("packaging/Containerfile"), &image.join("Containerfile"))?;
    write(&image.join("THIRD-PARTY-LICENSES"), licences)?;
    let runtime = image.join("runtime");
    fs::create_dir_all(&runtime).map_err(|error| Failure::file(&runtime, &error))?;
    Ok(image)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::file(path, &error))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    }
    fs::copy(from, to).map_err(|error| Failure::file(from, &error))?;
    Ok(())
}

/// Builds the image where buildah is installed, in a storage of its own that goes again; what to say of it.
fn try_image(image: &Path) -> Result<&'static str, Failure> {
    if !machine::has("buildah") {
        return Ok("not tried, there is no buildah");
    }
    let storage = machine::target().join("image-storage");
    let mut buildah = machine::command("buildah");
    buildah.args(["--storage-driver", "vfs", "--root"]).arg(storage.join("root"));
    buildah.arg("--runroot").arg(storage.join("run"));
    let built = machine::run(buildah.args(["build", "--isolation", "chroot", "--tag", "isotherm"]).arg(image));
    let _ = fs::remove_dir_all(&storage);
    built.map(|()| "buildah built it")
}

fn report(made: &[(&PathBuf, &str)]) -> Result<(), Failure> {
    let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
    table.row(["made", "MB", ""]);
    let root = machine::root();
    for (path, what) in made {
        let size = megabytes(path).map_err(|error| Failure::file(path, &error))?;
        table.row([path.strip_prefix(&root).unwrap_or(path).display().to_string(), size, (*what).to_owned()]);
    }
    println!("\n{table}");
    Ok(())
}

fn megabytes(path: &Path) -> std::io::Result<String> {
    let bytes = if path.is_dir() {
        fs::read_dir(path)?.flatten().filter_map(|entry| entry.metadata().ok()).map(|entry| entry.len()).sum()
    } else {
        fs::metadata(path)?.len()
    };
    Ok(format!("{:.1}", bytes as f64 / 1e6))
}
