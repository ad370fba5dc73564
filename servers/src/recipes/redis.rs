//! Redis with an append-only file.

use std::path::PathBuf;

use super::{Recipe, Site, quoted};
use crate::docker::Image;
use crate::process::Process;
use crate::{command, ports};

pub(super) struct Redis;

impl Recipe for Redis {
    fn find(&self) -> Result<PathBuf, String> {
        command::required("redis-server")
    }

    fn launch(&self, site: &Site, processes: &mut Vec<Process>) -> Result<(), String> {
        let file = site.write("redis.conf", &settings(site))?;
        let mut command = site.command(site.program(), "KILL");
        command.arg(file).arg("--dir").arg(&site.folder);
        processes.push(site.spawn(command, "redis")?);
        Ok(())
    }

    /// It accepts connections before it has read its file, and says `-LOADING` meanwhile.
    fn is_ready(&self, site: &Site) -> bool {
        if site.certificates.is_some() {
            return ports::speaks_tls(site.port);
        }
        let mut say = Vec::new();
        if let Some((user, password)) = &site.setup.credentials {
            say.extend(request(&["AUTH", user, password]));
        }
        say.extend(request(&["PING"]));
        let is_end = |said: &[u8]| said.ends_with(b"+PONG\r\n");
        is_end(&ports::ask(site.port, &say, is_end))
    }

    fn url(&self, site: &Site) -> String {
        site.address("redis", "rediss", "")
    }

    fn image(&self, _site: &Site) -> Image {
        Image {
            name: "redis:7",
            environment: Vec::new(),
            arguments: &[
                "redis-server",
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
                "--save",
                "",
            ],
            port: 6379,
        }
    }
}

fn settings(site: &Site) -> String {
    let mut settings = "bind 127.0.0.1\n\
                        daemonize no\n\
                        save \"\"\n\
                        appendonly yes\n\
                        appendfsync always\n"
        .to_owned();
    let port = site.port;
    match &site.certificates {
        None => settings += &format!("port {port}\n"),
        Some(files) => {
            settings += &format!("port 0\ntls-port {port}\ntls-auth-clients no\n");
            for (name, file) in [
                ("tls-cert-file", &files.certificate),
                ("tls-key-file", &files.key),
                ("tls-ca-cert-file", &files.ca),
            ] {
                settings += &format!("{name} {}\n", quoted(&file.to_string_lossy()));
            }
        }
    }
    if let Some((user, password)) = &site.setup.credentials {
        let (user, password) = (quoted(user), quoted(&format!(">{password}")));
        settings += &format!("user default off\nuser {user} on {password} ~* &* +@all\n");
    }
    settings
}

/// A command as the protocol has it, whatever the words hold.
fn request(words: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text += &format!("${}\r\n{word}\r\n", word.len());
    }
    text.into_bytes()
}
