//! NATS with JetStream.

use std::path::PathBuf;

use super::{Recipe, Site, quoted};
use crate::docker::Image;
use crate::process::Process;
use crate::{command, ports};

pub(super) struct Nats;

impl Recipe for Nats {
    fn find(&self) -> Result<PathBuf, String> {
        command::required("nats-server")
    }

    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String> {
        let mut command = site.command(site.program(), "KILL");
        command
            .args(["-a", "127.0.0.1", "-p", &site.port.to_string()])
            .args(["-js", "-sd"])
            .arg(site.folder.join("jetstream"))
            .arg("-c")
            .arg(site.write("nats.conf", &settings(site))?);
        processes.push(site.spawn(command, "nats")?);
        Ok(())
    }

    /// It greets whoever comes with a line of JSON, before TLS begins and once JetStream has read
    /// its files.
    fn is_ready(&self, site: &Site) -> bool {
        let greeting = ports::ask(site.port, b"", |said| said.contains(&b'\n'));
        let greeting = String::from_utf8_lossy(&greeting);
        greeting.starts_with("INFO ") && greeting.contains(r#""jetstream":true"#)
    }

    fn url(&self, site: &Site) -> String {
        site.address("nats", "tls", "")
    }

    fn image(&self, _site: &Site) -> Image {
        Image {
            name: "nats:2",
            environment: Vec::new(),
            arguments: &["-js", "-sd", "/data"],
            port: 4222,
        }
    }
}

fn settings(site: &Site) -> String {
    let mut settings = String::new();
    if let Some((user, password)) = &site.setup.credentials {
        let (user, password) = (quoted(user), quoted(password));
        settings += &format!("authorization {{ user: {user}, password: {password} }}\n");
    }
    if let Some(files) = &site.certificates {
        let [certificate, key] =
            [&files.certificate, &files.key].map(|file| quoted(&file.to_string_lossy()));
        settings += &format!("tls {{ cert_file: {certificate}, key_file: {key} }}\n");
    }
    settings
}
