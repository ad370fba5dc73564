//! NATS with JetStream.

use std::path::PathBuf;

use super::{Recipe, Site};
use crate::process::Process;
use crate::{Setup, find, ports};

pub(super) struct Nats;

impl Recipe for Nats {
    fn find(&self) -> Result<PathBuf, String> {
        find::required("nats-server")
    }

    fn refuses(&self, _setup: &Setup) -> Option<&'static str> {
        None
    }

    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String> {
        let mut command = site.command(&site.program, "KILL");
        command
            .args(["-a", "127.0.0.1", "-p", &site.port.to_string()])
            .args(["-js", "-sd"])
            .arg(site.folder.join("jetstream"));
        processes.push(site.spawn(command, "nats")?);
        Ok(())
    }

    /// It greets whoever comes with a line of JSON, once JetStream has read its files.
    fn is_ready(&self, site: &Site, _server: &Process) -> bool {
        let greeting = ports::ask(site.port, b"", |said| said.contains(&b'\n'));
        let greeting = String::from_utf8_lossy(&greeting);
        greeting.starts_with("INFO ") && greeting.contains(r#""jetstream":true"#)
    }

    fn url(&self, site: &Site) -> String {
        format!("nats://{}127.0.0.1:{}", site.user_part(""), site.port)
    }
}
